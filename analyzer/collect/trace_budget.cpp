#include "collect/trace_budget.hpp"

#include <malloc.h>

#include <algorithm>
#include <ctime>

#include "files/budgets.hpp"
#include "files/own_memory.hpp"

namespace forksight::collect {
namespace {

// Looks at the memory and at the clock cost more than reading a small record. So there is one look for as many records
// or bytes of records.
constexpr std::size_t kRecords = 64;
constexpr std::size_t kPayload = std::size_t{64} << 10U;

std::chrono::nanoseconds processor_time() {
  timespec now{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) return {};
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

TraceBudget::TraceBudget()
    : bytes_left_(files::kMaxTraceMemoryBytes),
      name_bytes_left_(files::kMaxTraceNameBytes),
      time_left_(files::kLongestTraceReading) {}

void TraceBudget::begin_file(std::uint64_t size) {
  own_bytes_ = size;
  own_time_ = files::kLongestTraceReadingPerMib * static_cast<std::int64_t>(size >> 20U);
  file_bytes_ = files::written_bytes().value_or(0);
  file_time_ = processor_time();
  most_bytes_ = own_bytes_ + bytes_left_ / 2;
  most_time_ = own_time_ + time_left_ / 2;
  own_name_bytes_ = size;
  least_name_bytes_left_ = name_bytes_left_ / 2;
  used_up_ = nullptr;
  records_ = 0;
  payload_ = 0;
}

bool TraceBudget::has_room() {
  if (const auto now = files::written_bytes(); now && *now > file_bytes_ + most_bytes_) used_up_ = "memory";
  if (processor_time() - file_time_ > most_time_) used_up_ = "time";
  return used_up_ == nullptr;
}

bool TraceBudget::allows(const TraceRecord& record) {
  ++records_;
  payload_ += record.payload.size();
  if (used_up_ != nullptr || (records_ < kRecords && payload_ < kPayload)) return used_up_ == nullptr;
  records_ = 0;
  payload_ = 0;
  return has_room();
}

void TraceBudget::stop_clock() {
  const Nanoseconds used = processor_time() - file_time_;
  time_left_ -= std::min(time_left_, used - std::min(used, own_time_));
}

bool TraceBudget::allows_name(std::size_t bytes) {
  if (bytes <= own_name_bytes_) {
    own_name_bytes_ -= bytes;
    return true;
  }
  if (name_bytes_left_ < least_name_bytes_left_ + bytes) return false;
  name_bytes_left_ -= bytes;
  return true;
}

void TraceBudget::end_file() {
  const std::uint64_t most_kept = std::uint64_t{16} << 20U;
  // The readers of this file have freed their tables. The next file may use this memory, so it must not count.
  if (files::written_bytes().value_or(0) > file_bytes_ + most_kept) ::malloc_trim(0);
  const std::uint64_t now = files::written_bytes().value_or(0);
  bytes_left_ -= std::min(bytes_left_, now - std::min(now, file_bytes_ + own_bytes_));
}

}  // namespace forksight::collect
