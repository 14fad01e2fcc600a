#include "dump/fields.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <vector>

#include "enumerators.hpp"
#include "forksight/abi/glibc.hpp"
#include "forksight/trace/cures.hpp"
#include "render/printable.hpp"

namespace forksight::dump {

namespace {

enum class Shown { kUnsigned, kSigned, kHex, kReference, kEnumerator, kFlags, kSet, kText, kBytes };

struct Field {
  std::string_view of;  // name of the struct
  const char* name;
  std::uint32_t offset;
  std::uint32_t bytes;  // of one element
  std::uint32_t count;  // number of elements; 0: not an array
  Shown shown;
  std::string_view (*name_of)(std::uint64_t) = nullptr;
};

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::atomic<T>> {
  using type = T;
};
template <class T>
using Element = typename Plain<std::remove_all_extents_t<T>>::type;

template <class T>
consteval Shown shown_by_type() {
  using Of = Element<T>;
  if (std::is_enum_v<Of>) return Shown::kEnumerator;
  if (std::is_same_v<Of, char>) return Shown::kText;
  if (std::is_same_v<Of, std::uint8_t>) return Shown::kBytes;
  return std::is_signed_v<Of> ? Shown::kSigned : Shown::kUnsigned;
}

template <class T>
consteval auto names_by_type() -> std::string_view (*)(std::uint64_t) {
  if constexpr (std::is_enum_v<Element<T>>) {
    return &name_of_value<Element<T>>;
  } else {
    return nullptr;
  }
}

template <class T>
consteval Field field(std::string_view of, const char* name, std::size_t offset, Shown shown,
                      std::string_view (*name_of)(std::uint64_t)) {
  using Of = Element<T>;
  static_assert(std::is_enum_v<Of> || std::is_integral_v<Of>);
  return {of,    name,   static_cast<std::uint32_t>(offset), sizeof(Of), static_cast<std::uint32_t>(std::extent_v<T>),
          shown, name_of};
}

using namespace trace;

constexpr Field kFields[] = {
#define FORKSIGHT_SHOWN(type, name, shown, name_of) \
  field<decltype(type::name)>(#type, #name, offsetof(type, name), shown, name_of),
#define FORKSIGHT_FIELD(type, name) \
  FORKSIGHT_SHOWN(type, name, shown_by_type<decltype(type::name)>(), names_by_type<decltype(type::name)>())
#define FORKSIGHT_NUMBER(type, name) FORKSIGHT_SHOWN(type, name, Shown::kUnsigned, nullptr)
#define FORKSIGHT_HEX(type, name) FORKSIGHT_SHOWN(type, name, Shown::kHex, nullptr)
#define FORKSIGHT_REF(type, name) FORKSIGHT_SHOWN(type, name, Shown::kReference, nullptr)
#define FORKSIGHT_ENUM(type, name, values) FORKSIGHT_SHOWN(type, name, Shown::kEnumerator, &name_of_value<values>)
#define FORKSIGHT_FLAGS(type, name, values) FORKSIGHT_SHOWN(type, name, Shown::kFlags, &name_of_bit<values>)
#define FORKSIGHT_SET(type, name, values) FORKSIGHT_SHOWN(type, name, Shown::kSet, &name_of_value<values>)
#include "dump/fields.def"
#undef FORKSIGHT_SHOWN
};

constexpr bool covers(std::string_view of, std::size_t bytes) {
  std::size_t end = 0;
  for (const Field& field : kFields) {
    if (field.of != of) continue;
    if (field.offset != end) return false;
    end += std::size_t{field.bytes} * std::max<std::uint32_t>(field.count, 1);
  }
  return end == bytes;
}

#define FORKSIGHT_RECORD(id, number, name, type, words) \
  static_assert(covers(#type, sizeof(type)), "fields.def does not have all fields of " #type);
#define FORKSIGHT_TAIL(id, type, count, element, name)                                           \
  static_assert(std::is_same_v<element, char> || std::is_same_v<element, std::byte> ||           \
                    std::is_same_v<element, std::uint64_t> || covers(#element, sizeof(element)), \
                "fields.def does not have all fields of " #element);
#include "forksight/trace/records.def"
static_assert(covers("TraceHeader", sizeof(TraceHeader)), "fields.def does not have all fields of TraceHeader");

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;  // little-endian, as the whole format is
  std::memcpy(&value, bytes.data() + offset, width);
  return value;
}

std::int64_t sign_extended(std::uint64_t value, std::size_t width) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

// Returns the names of the bits that are set. If some of these bits have no name, they form one number at the end.
Json bits(std::uint64_t value, std::string_view (*name_of)(std::uint64_t)) {
  Json names = Json::array();
  std::uint64_t unnamed = 0;
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    if ((value >> bit & 1U) == 0) continue;
    const std::string_view name = name_of(bit);
    if (name.empty()) {
      unnamed |= std::uint64_t{1} << bit;
    } else {
      names.push_back(name);
    }
  }
  if (unnamed != 0) names.push_back(hex(unnamed));
  return names;
}

Json element_of(const Field& field, std::uint64_t value) {
  switch (field.shown) {
    case Shown::kUnsigned: return value;
    case Shown::kSigned: return sign_extended(value, field.bytes);
    case Shown::kEnumerator: {
      const std::string_view name = field.name_of(value);
      return name.empty() ? Json(value) : Json(name);
    }
    case Shown::kFlags:
    case Shown::kSet: return bits(value, field.name_of);
    case Shown::kHex:
    case Shown::kReference:
    case Shown::kText:
    case Shown::kBytes: break;
  }
  return hex(value);
}

Json value_of(const Field& field, std::span<const std::byte> bytes) {
  if (field.count == 0) return element_of(field, number_at(bytes, field.offset, field.bytes));
  const auto all = bytes.subspan(field.offset, std::size_t{field.bytes} * field.count);
  if (field.shown == Shown::kText) {
    const auto end = std::find_if(all.rbegin(), all.rend(), [](std::byte byte) { return byte != std::byte{0}; });
    return text_of(all.first(static_cast<std::size_t>(all.rend() - end)));
  }
  if (field.shown == Shown::kBytes) return hex_digits(all);
  Json elements = Json::array();
  for (std::size_t i = 0; i < field.count; ++i) {
    const std::uint64_t value = number_at(all, i * field.bytes, field.bytes);
    if (field.shown != Shown::kReference || value != 0) elements.push_back(element_of(field, value));
  }
  return elements;
}

bool is_zero(const Field& field, std::span<const std::byte> bytes) {
  return std::ranges::all_of(
      bytes.subspan(field.offset, std::size_t{field.bytes} * std::max<std::uint32_t>(field.count, 1)),
      [](std::byte byte) { return byte == std::byte{0}; });
}

// Shows memory as words of 8 bytes. Bytes that are left over are shown as hexadecimal digits.
Json words_of(std::span<const std::byte> memory) {
  Json words = Json::array();
  for (; memory.size() >= sizeof(std::uint64_t); memory = memory.subspan(sizeof(std::uint64_t))) {
    words.push_back(hex(number_at(memory, 0, sizeof(std::uint64_t))));
  }
  if (!memory.empty()) words.push_back(hex_digits(memory));
  return words;
}

Json tail_of(std::string_view element, std::size_t element_bytes, std::span<const std::byte> bytes) {
  if (element == "char") return text_of(bytes);
  if (element == "std::byte" || element == "std::uint64_t") return words_of(bytes);
  Json elements = Json::array();
  for (; !bytes.empty(); bytes = bytes.subspan(element_bytes)) {
    elements.push_back(read_struct(element, bytes.first(element_bytes)));
  }
  return elements;
}

}  // namespace

std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

std::string hex_digits(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  digits.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    digits += kDigits[static_cast<unsigned>(byte) >> 4U];
    digits += kDigits[static_cast<unsigned>(byte) & 15U];
  }
  return digits;
}

std::string text_of(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string text;
  for (;;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    text += render::printable(rest.substr(0, end));
    if (end == rest.size()) return text;
    text += '\n';
    rest.remove_prefix(end + 1);
  }
}

Json read_struct(std::string_view name, std::span<const std::byte> bytes) {
  Json object = Json::object();
  for (const Field& field : kFields) {
    if (field.of != name) continue;
    if (std::string_view(field.name) == "reserved" && is_zero(field, bytes)) continue;
    object[field.name] = value_of(field, bytes);
  }
  return object;
}

Json read_payload(const RecordTerms& terms, std::span<const std::byte> payload) {
  Json object = read_struct(terms.fixed, payload.first(terms.fixed_bytes));
  auto rest = payload.subspan(terms.fixed_bytes);
  for (const TailTerms& tail : kTails) {
    if (tail.type != terms.type) continue;
    const std::uint64_t count = number_at(payload, tail.count_offset, sizeof(std::uint32_t));
    const auto bytes = rest.first(count * tail.element_bytes);
    object[tail.name] = tail_of(tail.element, tail.element_bytes, bytes);
    rest = rest.subspan(bytes.size());
  }
  // More bytes are left than the padding before the next record: a newer writer has added fields.
  if (rest.size() >= kRecordAlign) object["more"] = hex_digits(rest);
  return object;
}

}  // namespace forksight::dump
