// A transport carries messages from one process to another and back. Two processes are forked after prepare(). The
// first process sends on lane 0 and receives on lane 1. The second process does the opposite. For a transport that
// copies, loan() returns a private buffer. So callers can use all transports in the same way.
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
  std::size_t bytes = 64;  // the size of each message
  unsigned depth = 4;      // how many messages may be on the way at most
  // How long a waiter spins before it sleeps, if the transport can spin. With kSpinsForEver it never sleeps.
  unsigned spin_us = 0;
  unsigned idle = 0;                     // only for forksight's queue: how many attached participants do nothing
  unsigned processes = 2;                // how many processes call join()
  unsigned slots = 0;                    // only for forksight's queue; 0: as many as `depth`
  bool redelivers = false;               // only for forksight's queue: a dead consumer's message comes again
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
  // Called in each process after the forks. When the call has returned in both processes, messages can be sent in both
  // directions.
  virtual void join(Side side) = 0;
  // Returns a buffer of Shape::bytes to write into.
  virtual void* loan() = 0;
  // Sends the buffer that loan() returned last.
  virtual void send() = 0;
  // Waits for a message. It is valid until release().
  virtual const void* receive() = 0;
  virtual void release() = 0;
};

struct Kind {
  std::string_view name;
  std::function<std::unique_ptr<Transport>()> make;
  bool copies;      // copies each byte into the kernel or into a queue, and out again
  bool spins;       // obeys Shape::spin_us
  bool takes_many;  // several processes may use each side
};
// Returns all transports of this build.
std::span<const Kind> kinds();

// Adds a transport to kinds(). The file of each transport has a static object of this type.
struct Registered {
  explicit Registered(Kind kind);
};

// Ends the program with a message and errno.
[[noreturn]] void fail(std::string_view what);
// Returns the result `got` of a call. If it is negative, ends the program by fail().
long must(long got, std::string_view what);
// Returns memory of zeros that forked processes share.
void* shared_memory(std::size_t bytes);

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace forksight::bench
