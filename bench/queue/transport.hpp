// One way from one process to another and one way back, over any transport. Two processes are forked after prepare():
// the first sends on lane 0 and receives on lane 1, the second the other way round. A transport that copies lends a
// private buffer, so that all of them do the same work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace forksight::bench {

struct Shape {
  std::size_t bytes = 64;  // of a message; all have one size
  unsigned depth = 4;      // messages on the way, at most
  // time before sleeping, if the transport can spin; kSpinsForEver: never sleeps
  unsigned spin_us = 0;
  unsigned idle = 0;                     // only for forksight's queue: places taken by idle participants
  unsigned processes = 2;                // that join
  unsigned slots = 0;                    // only for forksight's queue; 0: depth
  bool redelivers = false;               // ours alone
  std::string name = "forksight-bench";  // for transports that need a name
};
constexpr unsigned kSpinsForEver = ~0u;

enum class Side : std::uint8_t { kFirst, kSecond };

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;
  // Called once, before the forks.
  virtual void prepare(const Shape& shape) = 0;
  // Called in each process after the forks. When both have returned, each end has what it needs from the other.
  virtual void join(Side side) = 0;
  // A buffer of Shape::bytes to write into.
  virtual void* loan() = 0;
  // The last loan.
  virtual void send() = 0;
  // Waits for a message; valid until release().
  virtual const void* receive() = 0;
  virtual void release() = 0;
};

struct Kind {
  std::string_view name;
  std::function<std::unique_ptr<Transport>()> make;
  bool copies;      // every byte passes through the kernel or the memory of a queue
  bool spins;       // obeys Shape::spin_us
  bool takes_many;  // processes on either side
};
// All transports of this build.
std::span<const Kind> kinds();

// Adds one to kinds(); used by a static initialiser.
struct Registered {
  explicit Registered(Kind kind);
};

// Ends the program with a message and errno.
[[noreturn]] void fail(std::string_view what);
// `got` is the result of a call: a negative one is a failure. Otherwise it is returned.
long must(long got, std::string_view what);
// Memory that forked processes share, all zero.
void* shared_memory(std::size_t bytes);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace forksight::bench
