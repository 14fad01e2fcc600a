// The fields of the trace's structs (fields.def), and their values from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "forksight/trace/records.hpp"

namespace forksight::dump {

// Keeps the order in which members are written.
using Json = nlohmann::ordered_json;

// Offsets, addresses and similar numbers become strings, because a JSON number does not hold all of their bits.
std::string hex(std::uint64_t value);
std::string hex_digits(std::span<const std::byte> bytes);
// Any bytes as valid UTF-8 without control characters but newlines.
std::string text_of(std::span<const std::byte> bytes);

// The struct of that name as one object. `bytes` must be the whole struct.
Json read_struct(std::string_view name, std::span<const std::byte> bytes);
// The fixed part and the tails of a complete record, as one object.
Json read_payload(const trace::RecordTerms& terms, std::span<const std::byte> payload);

}  // namespace forksight::dump
