// Output that streams of stdio have not written at a fork. Both sides have the bytes then, and each that flushes them
// writes them. Noted are the streams that had such bytes, what became of them in this process, and in its children.
//
// What is looked at is read from libc's list of streams and from the FILEs themselves. In a process with one thread
// nobody changes them meanwhile. Where there are more, prepare reads without a lock, by copies that cannot fault, and
// may be wrong; the child, in which fork() has left the list whole and no other thread runs, keeps what is true there,
// and only what a child has kept can lead to a finding. No lock of stdio is taken.
#pragma once

#include <cstdint>

#include "forksight/trace/output.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

struct _IO_FILE;

namespace forksight {

// Streams with bytes that were there at a fork. 0: the hooks have nothing to do.
extern std::uint32_t g_unflushed_count;

// Which of them a call on `stream` (null: on all) is about: look before the call, note after it has succeeded.
inline constexpr std::uint32_t kMaxUnflushed = 8;
struct FlushMarks {
  std::uint64_t records[kMaxUnflushed];  // refs to kUnflushed, 0: none
};
FlushMarks find_unflushed(const _IO_FILE* stream);
void note_flushes(const FlushMarks& marks, trace::FlushKind kind, const Site& site);
// The bytes are thrown away (__fpurge).
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
