// Records output that stdio streams had not yet written at a fork. Parent and child then both have the bytes. Each
// process that flushes the stream writes the bytes, so the output may contain the bytes several times. The shim records
// which streams had such bytes, and which processes wrote them.
//   The shim reads libc's list of streams, and the FILEs themselves, without a lock of stdio. In a process with one
//   thread, the list and the FILEs cannot change meanwhile. In a process with more threads, the prepare step lets the
//   kernel copy them. Such a copy cannot fault, but may have wrong values. In the child, the list is complete and no
//   other thread runs. So the child checks each entry again, and keeps only the entries that are right. Only such
//   entries can lead to a finding.
#pragma once

#include <cstdint>

#include "forksight/trace/output.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

struct _IO_FILE;

namespace forksight {

// The number of streams with unwritten bytes from a fork. 0: the hooks have nothing to do.
extern std::uint32_t g_unflushed_count;

// The entries that a call on `stream` (null: on all streams) concerns. Call find_unflushed() before the real call, and
// note_flushes() after it has succeeded.
inline constexpr std::uint32_t kMaxUnflushed = 8;
struct FlushMarks {
  std::uint64_t records[kMaxUnflushed];  // refs to kUnflushed, 0: none
};
FlushMarks find_unflushed(const _IO_FILE* stream);
void note_flushes(const FlushMarks& marks, trace::FlushKind kind, const Site& site);
// Called when the program is about to discard the bytes of a stream (__fpurge). Bytes from a fork that are still in the
// stream are forgotten. If such bytes are no longer there, this function records that they were written.
void note_purge(const _IO_FILE* stream, const Site& site);

namespace at_fork {
struct Unflushed {
  static bool tells();
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void starts(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
