// The part of the trace format about output that a stdio stream had not written at a fork. Parent and child then both
// have the bytes in the stream. If both flush the stream, the bytes are written twice.
#pragma once

#include <cstdint>

namespace forksight::trace {

// Bytes that a stream had not written at a fork. The prepare handler writes this record once. If a later fork of this
// process or of a child finds the same bytes in the stream, no further record is written.
struct UnflushedRecord {
  std::uint64_t fork;    // ref to kFork
  std::uint64_t stream;  // address of the FILE
  std::uint64_t bytes;
  std::int32_t fd;
  std::int32_t number;  // 0, 1 or 2: stdin, stdout, stderr; -1: another stream
  std::uint32_t text_bytes;
  std::uint32_t reserved;
  char text[40];  // the beginning of the bytes
};
static_assert(sizeof(UnflushedRecord) == 80);

enum class FlushKind : std::uint32_t {
  kFlush = 1,   // fflush() returned 0
  kClose = 2,   // fclose() returned 0
  kAtExit = 3,  // the process ends by exit() or by returning from main, and libc flushes the bytes next
  kGone = 4,    // the stream has written the bytes for another reason, for example because its buffer was full
};

// The process that wrote this record has written the bytes to the file that the stream had at the fork. With kAtExit,
// the process is about to write the bytes.
struct FlushRecord {
  std::uint64_t unflushed;  // ref to kUnflushed
  std::uint64_t fork;       // ref to the kFork that made this process, 0: this process is the first of this trace
  std::uint64_t stack;      // ref to kStack
  FlushKind kind;
  std::uint32_t reserved;
};
static_assert(sizeof(FlushRecord) == 32);

}  // namespace forksight::trace
