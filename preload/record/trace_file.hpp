// The trace file, mapped into memory. Its contents are not trusted: a forked child that gave up its rights can write to
// the file, and so can a stray store of the program. So this process keeps private values of where the file is mapped,
// how many bytes of it are reserved, and where its last known record ends. A word of the file is never used as an
// address, a length or a bound before it was checked against these values. A process that spoils the file harms only
// the trace.
//   All functions of this file are async-signal-safe and fork-child-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// Records of importance kFact may fill three quarters of the file. The rest is kept for kFinding: touches and other
// records that findings need most.
enum class Importance { kFact, kFinding };

bool trace_is_open();
// Creates the file if the configuration asks for one and there is none yet. If the file cannot be created, nothing is
// recorded, now or later. Returns trace_is_open().
bool open_trace();

// Reserves room for later records now, because later it may be impossible to open the file.
void reserve_trace_room();

// A place for a record of `size` bytes. Its first word says kWriting. `header` is null if there is no trace, if there
// is no space, or if the file is spoiled. The trace counts the records for which there was no space.
struct Claim {
  std::uint64_t offset;
  trace::RecordHeader* header;
};
Claim claim_record(std::uint32_t size, trace::RecordType type, Importance importance);
void count_dropped(std::uint64_t bytes);

// A committed record. Its bytes can be read and written, and may have any contents.
struct FoundBytes {
  std::byte* payload;  // null: there is no such record at `reference`
  std::size_t bytes;
};
FoundBytes find_bytes(std::uint64_t reference, trace::RecordType type);

// The fixed part of a committed record, whichever process wrote it; null if there is no such record at `reference`.
template <class T>
T* find_record(std::uint64_t reference, trace::RecordType type) {
  const FoundBytes found = find_bytes(reference, type);
  return found.payload != nullptr && found.bytes >= sizeof(T) ? reinterpret_cast<T*>(found.payload) : nullptr;
}

// As find_record(), but only for a record that has at least `tail` bytes behind its fixed part.
template <class T>
T* find_record_with(std::uint64_t reference, trace::RecordType type, std::size_t tail) {
  const FoundBytes found = find_bytes(reference, type);
  return found.payload != nullptr && found.bytes >= sizeof(T) && found.bytes - sizeof(T) >= tail
             ? reinterpret_cast<T*>(found.payload)
             : nullptr;
}

// References to the stacks that the processes of this trace have written recently; null without a trace. Other
// processes write these references, too, so the references must be checked.
trace::RecentRecord* recent_stacks();
// Counts a fork of this trace, and returns its number: 1 for the first fork; 0 without a trace. Other processes may
// have changed the numbers that these functions return.
std::uint64_t next_fork_ordinal();
std::uint64_t forks_so_far();                      // the number of forks that all processes of this trace have counted
std::atomic<std::uint64_t>& last_python_stacks();  // in the header of the trace, which must be open

}  // namespace forksight
