// Traces of the hazards: a parent 1000 with threads, a child 2000, and the touches of the child.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "forksight/trace/format.hpp"
#include "model/model.hpp"
#include "support/trace_builder.hpp"

namespace forksight::test {

inline constexpr std::int32_t kParent = TraceBuilder::kPid;
inline constexpr std::int32_t kHolder = 1001;
inline constexpr std::int32_t kChild = 2000;
inline constexpr std::uint64_t kLockAddress = 0x555'0000'4040;

// The bytes of a lock in the state that it had at the fork.
std::vector<std::uint8_t> mutex_memory(std::uint32_t kind, std::int32_t owner, std::uint32_t lock = 2);
std::vector<std::uint8_t> rwlock_memory(std::uint32_t readers, std::int32_t writer);
std::vector<std::uint8_t> spinlock_memory(std::int32_t value);
std::vector<std::uint8_t> semaphore_memory(std::uint32_t value);
std::vector<std::uint8_t> guard_memory(std::uint64_t value);
std::vector<std::uint8_t> condition_memory(std::uint32_t waiters);
std::vector<std::uint8_t> barrier_memory(std::uint32_t arrived, std::uint32_t left);

struct LockScene {
  trace::LockKind kind = trace::LockKind::kMutex;
  std::vector<std::uint8_t> memory = mutex_memory(0, kHolder);
  bool by_forking_thread = false;
  std::uint32_t holder_flags = 0;                         // trace::ThreadFlag
  trace::WaitKind holder_waits = trace::WaitKind::kNone;  // what the holder waits for at the fork, at kLockAddress
};

// A fork of a parent that has one thread besides the forking thread. One of these two threads holds a lock.
class LockTrace {
 public:
  explicit LockTrace(const LockScene& scene, std::int32_t child = kChild);

  std::uint64_t touch(trace::TouchKind kind, std::uint32_t flags = 0,
                      trace::TouchAction action = trace::TouchAction::kNone,
                      trace::SyncOperation operation = trace::SyncOperation::kNone);
  // The child's only thread waits in a futex that no other thread uses.
  std::uint64_t wait(std::uint32_t flags = 0);
  void name(std::uint64_t touch, std::string_view text);
  void end(std::uint64_t touch, std::int32_t result);

  TraceBuilder trace;
  std::int32_t child;
  std::uint64_t fork = 0;
  std::uint64_t held = 0;
};

struct PoolScene {
  trace::RuntimeKind kind = trace::RuntimeKind::kLibgomp;
  std::uint32_t flags = 0;
  std::uint32_t workers = 3;
};

// A fork of a parent whose forking thread has an OpenMP pool.
class PoolTrace {
 public:
  explicit PoolTrace(const PoolScene& scene, std::int32_t child = kChild);

  std::uint64_t touch(std::uint32_t team, std::uint32_t flags = 0);
  void end(std::uint64_t touch);
  void cure(trace::CureMethod method, trace::CureResult result, bool used, std::uint32_t team = 4);

  TraceBuilder trace;
  std::int32_t child;
  std::uint64_t fork = 0;
  std::uint64_t runtime = 0;
};

struct LibcCallScene {
  const char* function;
  std::uint64_t locks;
};

// A fork of a parent whose other thread is inside a libc function.
class LibcTrace {
 public:
  explicit LibcTrace(const LibcCallScene& in_flight, std::uint32_t flags = 0, std::int32_t child = kChild);

  void quiesced(std::uint64_t waited_ns, std::uint32_t waited_for, std::uint32_t left);
  std::uint64_t touch(const LibcCallScene& call, std::uint32_t flags = 0);
  void end(std::uint64_t touch);

  TraceBuilder trace;
  std::int32_t child;
  std::uint64_t fork = 0;
  std::uint64_t other = 0;  // the thread inside the libc function
  std::uint64_t in_flight = 0;

 private:
  std::uint64_t call(const LibcCallScene& call);
};

// The model that the reader makes from the trace, without looking up names.
model::Model read_model(const TraceBuilder& trace);
void read_into(model::Model& model, const TraceBuilder& trace);

// A thread that sleeps in a futex without a timeout.
model::Wait futex_wait(std::int32_t tid);

// A stack from texts: "work app.c:31" is a function and a line in /src/app/, "work libfoo.so" a function and a module.
model::Stack make_stack(std::initializer_list<const char*> frames);

}  // namespace forksight::test
