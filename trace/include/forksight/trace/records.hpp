// The table of records.def as a reader uses it: the name of each record, and how many bytes it must have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/ends.hpp"
#include "forksight/trace/foresight.hpp"
#include "forksight/trace/format.hpp"
#include "forksight/trace/handlers.hpp"
#include "forksight/trace/mpi.hpp"
#include "forksight/trace/output.hpp"
#include "forksight/trace/vfork.hpp"

namespace forksight::trace {

struct TailTerms {
  RecordType type;
  std::uint32_t count_offset;  // offset of the 32-bit count in the fixed part
  std::uint32_t element_bytes;
  const char* element;
  const char* name;
};

struct RecordTerms {
  RecordType type;
  const char* name;
  const char* fixed;  // name of the struct
  std::uint32_t fixed_bytes;
};

inline constexpr RecordTerms kRecords[] = {
#define FORKSIGHT_RECORD(id, number, name, type, words) {RecordType::id, #name, #type, sizeof(type)},
#include "forksight/trace/records.def"
};

inline constexpr TailTerms kTails[] = {
#define FORKSIGHT_TAIL(id, type, count, element, name)                                                             \
  {RecordType::id, static_cast<std::uint32_t>(offsetof(type, count)), static_cast<std::uint32_t>(sizeof(element)), \
   #element, #name},
#include "forksight/trace/records.def"
};

#define FORKSIGHT_TAIL(id, type, count, element, name) static_assert(sizeof(type::count) == sizeof(std::uint32_t));
#include "forksight/trace/records.def"

inline constexpr std::size_t kRecordNumbers = 256;  // each number of a record is less than this

// Maps the number of a record to its place in kRecords, counted from 1. The place is 0 if no record has the number.
inline constexpr auto kRecordPlaces = [] {
  std::array<std::uint8_t, kRecordNumbers> places{};
  std::uint8_t place = 0;
  for (const RecordTerms& terms : kRecords) places[static_cast<std::size_t>(terms.type)] = ++place;
  return places;
}();

// Returns null for a type that this build does not know.
constexpr const RecordTerms* find_terms(RecordType type) {
  const auto number = static_cast<std::size_t>(type);
  const std::size_t place = number < kRecordNumbers ? kRecordPlaces[number] : 0;
  return place == 0 ? nullptr : &kRecords[place - 1];
}

}  // namespace forksight::trace
