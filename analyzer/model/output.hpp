// Output that stdio streams had not written at a fork. Part of the model: see model.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

// How bytes left a stdio stream.
enum class FlushKind {
  kFlush,   // fflush()
  kClose,   // fclose()
  kAtExit,  // the process ended by exit() or by returning from main; both flush the stream
  kGone,    // the stream wrote the bytes for another reason, for example because its buffer was full
};

// A process wrote the bytes of an UnflushedOutput.
struct Flush {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::optional<ForkId> fork;  // the fork that made the process; none: the first process of its trace
  FlushKind kind = FlushKind::kFlush;
  Stack stack;
};

// Bytes that were in a stdio stream at a fork. So after the fork both processes had these bytes.
struct UnflushedOutput {
  ForkId fork = 0;  // the first fork at which the stream had these bytes
  int fd = -1;
  int number = -1;             // 0, 1 or 2: stdin, stdout, stderr; -1: another stream
  std::uint64_t bytes = 0;     // the number of bytes at that fork; at later forks the stream may have had more
  std::string text;            // the beginning of these bytes
  std::vector<Flush> flushes;  // in order of time
};

}  // namespace forksight::model
