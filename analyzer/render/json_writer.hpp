// Writes a JSON document piece by piece. So the document takes no memory besides one piece of text, however many
// processes or threads it lists.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

namespace forksight::render {

// Takes the next piece of a document. Returns false if the piece could not be written.
using Sink = std::function<bool(std::string_view piece)>;

// A caller calls key() before each value in an object. After the last value, it calls finish().
// The layout is that of nlohmann::json::dump(2): each member and each element has its own line.
class JsonWriter {
 public:
  explicit JsonWriter(Sink sink) : sink_(std::move(sink)) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }

  // `name` consists of letters, digits and underscores.
  void key(std::string_view name);

  void null() { add("null"); }
  void value(bool is_true) { add(is_true ? "true" : "false"); }
  void value(double number);
  template <std::signed_integral T>
  void value(T number) {
    add_signed(number);
  }
  template <std::unsigned_integral T>
  void value(T number) {
    add_unsigned(number);
  }
  // The bytes may be any. Those that are not UTF-8 are written as U+FFFD. Control characters are escaped: see
  // render/printable.hpp.
  void value(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }

  template <class T>
  void member(std::string_view name, const T& of_member) {
    key(name);
    value(of_member);
  }

  // Writes a newline and the rest of the document. Returns false if the sink has refused a piece.
  bool finish();

 private:
  void begin(char bracket);
  void end(char bracket);
  void begin_value();
  void add(std::string_view text);
  void add_signed(std::int64_t number);
  void add_unsigned(std::uint64_t number);
  void new_line();

  Sink sink_;
  std::string piece_;
  std::size_t depth_ = 0;
  bool is_first_ = true;       // nothing is written yet in the innermost object or array
  bool is_after_key_ = false;  // the next value belongs to a key
  bool is_refused_ = false;    // the sink has refused a piece
};

// Returns the document that `write` writes.
std::string json_text(const std::function<void(JsonWriter&)>& write);

}  // namespace forksight::render
