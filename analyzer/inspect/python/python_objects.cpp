#include "inspect/python/python_objects.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace forksight::inspect {
namespace {

constexpr std::size_t kMostNameCharacters = 256;
constexpr std::size_t kMostFileCharacters = 4096;
constexpr std::size_t kMostLineBytes = std::size_t{4} << 20U;
constexpr std::size_t kMostLocals = 256;
constexpr std::size_t kMostCodes = 16384;

// co_localspluskinds
constexpr std::uint8_t kHidden = 0x10;
constexpr std::uint8_t kLocalOrCell = 0x20 | 0x40;

constexpr std::uint32_t kReplacement = 0xFFFD;

void append_utf8(std::uint32_t character, std::string& text) {
  // Half of a surrogate pair stands for a byte that was not UTF-8 (PEP 383).
  if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF)) character = kReplacement;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto follow = [&](unsigned shift) { add(0x80U | ((character >> shift) & 0x3FU)); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0U | (character >> 6U));
    follow(0);
  } else if (character < 0x10000) {
    add(0xE0U | (character >> 12U));
    follow(6);
    follow(0);
  } else {
    add(0xF0U | (character >> 18U));
    follow(12);
    follow(6);
    follow(0);
  }
}

}  // namespace

bool PythonObjects::take_from_budget(std::size_t size) {
  const bool is_enough = size <= left_;
  left_ -= std::min(size, left_);
  return is_enough;
}

std::vector<std::byte> PythonObjects::read(std::uint64_t address, std::size_t size) {
  if (!take_from_budget(size)) return {};
  std::vector<std::byte> result = memory_.bytes(address, size);
  if (result.size() != size) result.clear();
  return result;
}

std::string PythonObjects::string(std::uint64_t address, std::size_t most) {
  std::string text;
  if (address == 0) return text;
  const auto state = memory_.value<std::uint32_t>(address + layout_.string_state);
  const std::uint64_t length = word(address + layout_.string_length);
  if (!state || length == 0 || length > static_cast<std::uint64_t>(INT64_MAX)) return text;
  const std::uint32_t kind = *state >> layout_.string_kind_shift;
  const std::uint32_t width = kind & 7U;  // bytes of a character
  const bool is_compact = ((kind >> 3U) & 1U) != 0;
  const bool is_ascii = ((kind >> 4U) & 1U) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4) || (is_ascii && width != 1)) return text;
  const std::size_t count = std::min<std::uint64_t>(length, most);
  const auto data = read(address + (is_ascii ? layout_.string_ascii : layout_.string_other), count * width);
  for (std::size_t i = 0; i + width <= data.size(); i += width) {
    std::uint32_t character = 0;
    std::memcpy(&character, data.data() + i, width);
    append_utf8(is_ascii && character >= 0x80 ? kReplacement : character, text);
  }
  return text;
}

std::vector<std::byte> PythonObjects::bytes(std::uint64_t address, std::size_t most) {
  if (address == 0) return {};
  const std::uint64_t size = word(address + layout_.bytes_size);
  if (size > static_cast<std::uint64_t>(INT64_MAX)) return {};
  return read(address + layout_.bytes_data, std::min<std::uint64_t>(size, most));
}

bool PythonObjects::is_code(std::uint64_t address) {
  const std::uint64_t type = word(address + layout_.object_type);
  if (type == 0) return false;
  if (type == code_type_) return true;
  constexpr std::array<char, 5> kName{'c', 'o', 'd', 'e', '\0'};
  if (memory_.value<std::array<char, 5>>(word(type + layout_.type_name)) != kName) return false;
  code_type_ = type;
  return true;
}

const PythonCode* PythonObjects::code(std::uint64_t address) {
  const auto known = codes_.find(address);
  if (known != codes_.end()) return known->second.file.empty() && known->second.name.empty() ? nullptr : &known->second;
  if (address == 0 || codes_.size() >= kMostCodes) return nullptr;
  PythonCode& code = codes_[address];
  if (!is_code(address)) return nullptr;
  code.name = string(word(address + layout_.code_name), kMostNameCharacters);
  code.file = string(word(address + layout_.code_file), kMostFileCharacters);
  code.first_line = memory_.value<std::int32_t>(address + layout_.code_first_line).value_or(0);
  code.lines = bytes(word(address + layout_.code_lines), kMostLineBytes);
  if (layout_.code_instructions != 0) code.instructions = address + layout_.code_instructions;
  return code.name.empty() && code.file.empty() ? nullptr : &code;
}

std::vector<std::string> PythonObjects::local_names(std::uint64_t code) {
  std::vector<std::string> names;
  if (code == 0 || !is_code(code)) return names;
  const std::uint64_t tuple = word(code + layout_.code_local_names);
  if (tuple == 0) return names;
  const std::size_t count = std::min<std::uint64_t>(word(tuple + layout_.tuple_size), kMostLocals);
  std::vector<std::byte> kinds;
  if (layout_.code_local_kinds != 0) kinds = bytes(word(code + layout_.code_local_kinds), count);
  for (std::size_t i = 0; i < count; ++i) {
    if (layout_.code_local_kinds != 0) {
      const auto kind = i < kinds.size() ? std::to_integer<std::uint8_t>(kinds[i]) : std::uint8_t{0};
      if ((kind & kLocalOrCell) == 0 || (kind & kHidden) != 0) continue;
    }
    std::string name = string(word(tuple + layout_.tuple_items + i * sizeof(std::uint64_t)), kMostNameCharacters);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace forksight::inspect
