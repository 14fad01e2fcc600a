#include "files/bounded_json.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace forksight::files {
namespace {

using Json = nlohmann::json;

// Counts the items of a text without keeping them. Stops when there are too many.
class Counter : public nlohmann::json_sax<Json> {
 public:
  explicit Counter(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

  std::string fault() const {
    if (items_ > limits_.items) return fmt::format("has more than {} items", limits_.items);
    if (depth_ > limits_.depth) return fmt::format("has lists in lists, more than {} deep", limits_.depth);
    return "not valid JSON: cut, or another file";
  }

 private:
  bool count() { return ++items_ <= limits_.items; }
  bool enter() { return ++depth_ <= limits_.depth && count(); }
  bool leave() {
    --depth_;
    return true;
  }

  JsonLimits limits_;
  std::size_t items_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string find_json_fault(std::string_view text, const JsonLimits& limits) {
  Counter counter(limits);
  return Json::sax_parse(text, &counter) ? std::string() : counter.fault();
}

}  // namespace forksight::files
