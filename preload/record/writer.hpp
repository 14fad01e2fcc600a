// Appends records to the trace file. Lock-free, async-signal-safe and fork-child-safe: parent, children and signal
// handlers append to one shared mapping at the same time (forksight/trace/format.hpp explains why that is sound).
#pragma once

#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/slots.hpp"
#include "record/trace_file.hpp"

namespace forksight {

// A record under construction: its space is claimed, but readers do not see it yet. Converts to false if there is no
// trace, or no space.
class Record {
 public:
  Record(trace::RecordType type, std::size_t payload_bytes, Importance importance = Importance::kFact);
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  explicit operator bool() const { return header_ != nullptr; }
  std::byte* payload() const { return payload_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(payload_);
  }
  // Publishes the record: from now on, readers see it. Returns the number by which other records refer to this record.
  std::uint64_t commit();

 private:
  trace::RecordHeader* header_ = nullptr;
  std::byte* payload_ = nullptr;
  std::uint64_t offset_ = 0;
  std::uint32_t size_ = 0;
  trace::RecordType type_;
};

// Writes a record. Returns what commit() returns; 0 if there is no trace, or no space.
template <class T>
std::uint64_t append(trace::RecordType type, const T& payload, Importance importance = Importance::kFact) {
  Record record(type, sizeof(T), importance);
  if (!record) return 0;
  __builtin_memcpy(record.payload(), &payload, sizeof(T));
  return record.commit();
}

// Copies up to bound.bytes bytes of a stack. Returns the number of copied bytes. It is smaller than bound.bytes if some
// of the bytes are not mapped.
std::uint32_t read_stack(std::uint64_t sp, void* to, const StackBound& bound);
// Writes the record of the stack at `site`. The bytes of the stack are read from this process's memory now. `slot`, the
// slot of the stack's thread, shows where the stack ends.
std::uint64_t append_stack(const Site& site, const Slot* slot, std::size_t limit, bool frozen, Importance importance);
// Writes the record of a stack that was copied earlier. `flags`: trace::StackFlag.
std::uint64_t append_saved_stack(const Site& site, const void* bytes, std::uint32_t count, std::uint32_t flags);
void append_note(trace::NoteCode code, std::uint64_t value);
// Adds 1 to the value of a note. The first call writes the note, and stores in `note` what commit() returned.
void count_in_note(std::uint64_t& note, trace::NoteCode code);

}  // namespace forksight
