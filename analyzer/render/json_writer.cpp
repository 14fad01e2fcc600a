#include "render/json_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "render/printable.hpp"

namespace forksight::render {
namespace {

constexpr std::size_t kPiece = 64U << 10U;

// True if JSON shows the character as it is.
bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

void JsonWriter::key(std::string_view name) {
  begin_value();
  piece_ += '"';
  piece_ += name;
  piece_ += "\": ";
  is_after_key_ = true;
}

void JsonWriter::value(double number) { add(nlohmann::json(number).dump()); }

void JsonWriter::value(std::string_view text) {
  if (std::ranges::all_of(text, is_plain)) {
    begin_value();
    piece_ += '"';
    piece_ += text;
    piece_ += '"';
    return;
  }
  add(escape_json_controls(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

bool JsonWriter::finish() {
  piece_ += '\n';
  if (!is_refused_) is_refused_ = !sink_(piece_);
  piece_.clear();
  return !is_refused_;
}

void JsonWriter::begin(char bracket) {
  begin_value();
  piece_ += bracket;
  ++depth_;
  is_first_ = true;
}

void JsonWriter::end(char bracket) {
  --depth_;
  if (!is_first_) new_line();  // an empty list or object takes one line
  piece_ += bracket;
  is_first_ = false;
}

// Begins a value, or a key and its value. Gives the text so far to the sink if it is long.
void JsonWriter::begin_value() {
  if (std::exchange(is_after_key_, false)) return;
  if (piece_.size() >= kPiece) {
    if (!is_refused_) is_refused_ = !sink_(piece_);
    piece_.clear();
  }
  if (!is_first_) piece_ += ',';
  if (depth_ > 0) new_line();
  is_first_ = false;
}

void JsonWriter::add(std::string_view text) {
  begin_value();
  piece_ += text;
}

void JsonWriter::add_signed(std::int64_t number) { add(fmt::format_int(number).c_str()); }

void JsonWriter::add_unsigned(std::uint64_t number) { add(fmt::format_int(number).c_str()); }

void JsonWriter::new_line() {
  piece_ += '\n';
  piece_.append(2 * depth_, ' ');
}

std::string json_text(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  JsonWriter out([&](std::string_view piece) {
    text += piece;
    return true;
  });
  write(out);
  out.finish();
  return text;
}

}  // namespace forksight::render
