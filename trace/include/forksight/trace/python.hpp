// The part of the trace format about Python's stacks. Included by format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class PythonMoment : std::uint32_t {
  kFork = 1,     // all threads of the forking process; written in prepare, or as the first record of the child
  kTouch = 2,    // only the touching thread, before it may block
  kRequest = 3,  // all threads, when `forksight run` asked for them
};

// The output of the interpreter's own traceback dumper, or text that the shim wrote in the same format. Tail: `bytes`
// of text. The lines of a thread follow a line "Thread 0xID (most recent call first):", "Current thread 0xID ..." or,
// for the writing thread, "Stack ...". ID is ThreadRecord::thread_pointer.
struct PythonStacksRecord {
  std::uint64_t touch;   // ref to kTouch or kShareUse (PythonMoment::kTouch), else 0
  std::uint64_t writer;  // thread pointer of the thread that wrote the record
  PythonMoment moment;
  std::uint32_t bytes;
  std::uint32_t cut;  // 1: there was more text
  std::uint32_t reserved;
};
static_assert(sizeof(PythonStacksRecord) == 32);

// Says which Python stacks the process had at one fork. Several forks may refer to the same stacks.
struct PythonAtForkRecord {
  std::uint64_t fork;    // ref to kFork
  std::uint64_t stacks;  // ref to kPythonStacks (PythonMoment::kFork)
};
static_assert(sizeof(PythonAtForkRecord) == 16);

// The process that wrote this record handles this signal from then on. When the process receives the signal with the
// value kPythonRequest, it writes a kPythonStacks record.
struct PythonSignalRecord {
  std::uint32_t signal;
  std::uint32_t reserved;
};
static_assert(sizeof(PythonSignalRecord) == 8);
inline constexpr std::uint64_t kPythonRequest = 0x46'53'50'59;  // "FSPY"

}  // namespace forksight::trace
