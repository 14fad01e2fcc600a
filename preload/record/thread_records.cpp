#include "record/thread_records.hpp"

#include <string.h>

#include "guest/sys.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

std::uint64_t ensure_thread_record(Slot& slot) {
  if (slot.record != 0 || !trace_is_open()) return slot.record;
  std::uint64_t stack = 0;
  if (slot.creation_site.pc != 0) {
    stack = append_saved_stack(slot.creation_site, slot.creation_stack, slot.creation_bytes,
                               slot.creation_cut != 0 ? trace::kStackCut : 0U);
  }
  trace::ThreadRecord record{slot.tid, slot.creator_tid,   slot.start_routine, stack, slot.created_ns, slot.flags, 0,
                             {},       slot.thread_pointer};
  memcpy(record.name, slot.name, sizeof record.name - 1);
  slot.record = append(trace::RecordType::kThread, record);
  return slot.record;
}

void keep_creation_stack(Slot& created, const Slot* creator, const Site& site) {
  const StackBound bound = stack_bound(creator, site.sp, kCreationStackBytes);
  created.creation_site = site;
  created.creation_bytes = read_stack(site.sp, created.creation_stack, bound);
  created.creation_cut = bound.cut ? 1 : 0;
}

}  // namespace forksight
