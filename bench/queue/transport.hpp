// One way from a process to another and one back, over whatever carries it. Two processes, forked after prepare(): the
// first sends on lane 0 and receives on lane 1, the second the other way round. A transport that copies lends a private
// buffer, so that the same work is done over all of them.
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
  std::size_t bytes = 64;                // of a message, all of one size
  unsigned depth = 4;                    // messages on the way at most
  unsigned spin_us = 0;                  // before sleeping, where the transport can; kSpinsForEver: never sleeps
  unsigned idle = 0;                     // ours alone: places taken by who does nothing
  unsigned processes = 2;                // that join
  unsigned slots = 0;                    // ours alone; 0: depth
  bool redelivers = false;               // ours alone
  std::string name = "forksight-bench";  // of what needs a name
};
constexpr unsigned kSpinsForEver = ~0u;

enum class Side : std::uint8_t { kFirst, kSecond };

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;
  // Once, before the forks.
  virtual void prepare(const Shape& shape) = 0;
  // In each process, after them; what either end needs of the other is there when both have returned.
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
  bool copies;      // every byte passes through the kernel or a queue's own memory
  bool spins;       // obeys Shape::spin_us
  bool takes_many;  // processes on either side
};
// All that are built in.
std::span<const Kind> kinds();

// Adds one to kinds(); of a static initialiser.
struct Registered {
  explicit Registered(Kind kind);
};

// Ends the program with what went wrong and errno.
[[noreturn]] void fail(std::string_view what);
// `got` is a call's result: negative is failure. Else returns it.
long must(long got, std::string_view what);
// Memory that forked processes share, zeros.
void* shared_memory(std::size_t bytes);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace forksight::bench
