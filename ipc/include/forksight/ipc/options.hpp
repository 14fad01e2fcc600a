// What a queue is made of, and how long a call may take.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace forksight::ipc {

// memfd: a sealed memfd, handed over by inheritance or SCM_RIGHTS; the kernel frees it with its last user.
// named: a file of shm_open() with a random name; what nobody uses any more is removed by gc().
enum class strategy : std::uint8_t { memfd, named };
// direct: send() puts the message into the segment itself; no thread, no lock. thread: a feeder thread does, from an
// unbounded private list, as CPython's multiprocessing.Queue does, with the same hazards at fork() and _exit().
enum class feed : std::uint8_t { direct, thread };
// What becomes of a message whose consumer died with it. drop: it is lost, at most once. redeliver: another consumer
// gets it, at least once; release() acknowledges.
enum class on_death : std::uint8_t { drop, redeliver };
// What send() and acquire() do when there is no room. block: wait. fail: time out at once. drop_oldest: the oldest
// message that nobody has taken yet is dropped, and counted.
enum class full : std::uint8_t { block, fail, drop_oldest };
// any: becomes a producer with its first acquire(), a consumer with its first receive(). caretaker: looks after parked
// messages, and can neither send nor receive; it does not count for unlink_at, nor for who waits for producers or
// consumers.
enum class role : std::uint8_t { any, producer, consumer, caretaker };

struct options {
  std::uint32_t slots = 64;              // messages in the queue; rounded up to a power of two, 2 to 2^20
  std::uint32_t buffers = 64;            // 1 to 2^20
  std::size_t buffer_bytes = 64 * 1024;  // of each; rounded up to a multiple of 64
  strategy st = strategy::memfd;
  feed f = feed::direct;
  on_death od = on_death::drop;
  full fl = full::block;
  std::int32_t spin_us = -1;            // before sleeping; -1: 0 where the process has one CPU, else 20
  std::uint32_t max_redeliver = 3;      // second deliveries of one message; after as many it is parked
  std::uint32_t max_participants = 16;  // handles attached at the same time, 2 to 255
  std::uint32_t unlink_at = 0;          // strategy::named: that many handles attached, the name is removed; 0: never
  bool atfork_handlers = false;         // feed::thread: the feeder's lock is taken across fork()
  bool readonly_payload = false;        // only the creator may write into buffers
  bool holds_references = false;        // what a message says is elsewhere: `forksight queue drain` refuses the queue
  role as = role::any;                  // of the creator's own handle
};

// An instant of CLOCK_MONOTONIC after which a call gives up.
class deadline {
 public:
  using clock = std::chrono::steady_clock;
  constexpr deadline(clock::time_point at) : at_(at) {}
  static constexpr deadline never() { return deadline(clock::time_point::max()); }
  // Does not wait. What there is not is said in a word, within a microsecond: inspect() says who has it.
  static constexpr deadline now() { return deadline(clock::time_point::min()); }
  // However long: what no clock reaches is never().
  static deadline after(clock::duration span) {
    const clock::time_point start = clock::now();
    return span > clock::time_point::max() - start ? never() : deadline(start + span);
  }

  bool is_never() const { return at_ == clock::time_point::max(); }
  bool is_now() const { return at_ == clock::time_point::min(); }
  clock::time_point at() const { return at_; }

 private:
  clock::time_point at_;
};

}  // namespace forksight::ipc
