// Reads the values of the fields of a trace's structs (fields.def) from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "forksight/trace/records.hpp"

namespace forksight::dump {

// A kind of JSON that keeps the order in which members are written.
using Json = nlohmann::ordered_json;

// Offsets, addresses and similar numbers become strings, because a JSON number does not hold all of their bits.
std::string hex(std::uint64_t value);
std::string hex_digits(std::span<const std::byte> bytes);
// Turns any bytes into valid UTF-8. The only control characters in the result are newlines.
std::string text_of(std::span<const std::byte> bytes);

// Reads the struct `name` into one JSON object. `bytes` must be the whole struct.
Json read_struct(std::string_view name, std::span<const std::byte> bytes);
// Reads the fixed part and the tails of a complete record into one JSON object.
Json read_payload(const trace::RecordTerms& terms, std::span<const std::byte> payload);

}  // namespace forksight::dump
