#include "record/writer.hpp"

#include <string.h>

#include "guest/clock.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

using trace::RecordHeader;
using trace::RecordState;

Record::Record(trace::RecordType type, std::size_t payload_bytes, Importance importance) : type_(type) {
  if (!trace_is_open()) return;
  constexpr std::size_t kAlign = trace::kRecordAlign;
  const std::size_t size = (sizeof(RecordHeader) + payload_bytes + kAlign - 1) / kAlign * kAlign;
  if (size > trace::kMaxRecordBytes) {
    count_dropped(size);
    return;
  }
  const Claim claim = claim_record(static_cast<std::uint32_t>(size), type, importance);
  if (claim.header == nullptr) return;
  offset_ = claim.offset;
  size_ = static_cast<std::uint32_t>(size);
  header_ = claim.header;
  payload_ = reinterpret_cast<std::byte*>(header_ + 1);
  header_->pid = sys::getpid();
  header_->tid = sys::gettid();
  header_->time_ns = now_ns();
}

std::uint64_t Record::commit() {
  // Pairs with the reader's acquire load of the word: a committed record is complete.
  header_->word.store(trace::pack_word(size_, type_, RecordState::kCommitted), std::memory_order_release);
  return offset_;
}

std::uint32_t read_stack(std::uint64_t sp, void* to, const StackBound& bound) {
  const auto* from = reinterpret_cast<const void*>(sp);
  if (!bound.mapped) return static_cast<std::uint32_t>(read_memory(from, to, bound.bytes));
  memcpy(to, from, bound.bytes);
  return static_cast<std::uint32_t>(bound.bytes);
}

std::uint64_t append_stack(const Site& site, const Slot* slot, std::size_t limit, bool frozen, Importance importance) {
  const StackBound bound = stack_bound(slot, site.sp, limit);
  Record record(trace::RecordType::kStack, sizeof(trace::StackRecord) + bound.bytes, importance);
  if (!record) return 0;
  auto* const stack = record.as<trace::StackRecord>();
  stack->pc = site.pc;
  stack->sp = site.sp;
  stack->fp = site.fp;
  stack->bytes = read_stack(site.sp, record.payload() + sizeof(trace::StackRecord), bound);
  stack->flags =
      (bound.cut || stack->bytes < bound.bytes ? trace::kStackCut : 0U) | (frozen ? trace::kStackFrozen : 0U);
  return record.commit();
}

std::uint64_t append_saved_stack(const Site& site, const void* bytes, std::uint32_t count, std::uint32_t flags) {
  Record record(trace::RecordType::kStack, sizeof(trace::StackRecord) + count);
  if (!record) return 0;
  *record.as<trace::StackRecord>() = {site.pc, site.sp, site.fp, count, flags};
  memcpy(record.payload() + sizeof(trace::StackRecord), bytes, count);
  return record.commit();
}

void append_note(trace::NoteCode code, std::uint64_t value) {
  append(trace::RecordType::kNote, trace::NoteRecord{code, 0, value});
}

void count_in_note(std::uint64_t& note, trace::NoteCode code) {
  if (!trace_is_open()) return;
  const std::uint64_t known = __atomic_load_n(&note, __ATOMIC_RELAXED);
  if (known == 0) {
    // If two threads write at the same time, there are two notes, which does no harm.
    __atomic_store_n(&note, append(trace::RecordType::kNote, trace::NoteRecord{code, 0, 1}), __ATOMIC_RELAXED);
    return;
  }
  auto* const record = find_record<trace::NoteRecord>(known, trace::RecordType::kNote);
  if (record != nullptr) __atomic_fetch_add(&record->value, 1, __ATOMIC_RELAXED);
}

}  // namespace forksight
