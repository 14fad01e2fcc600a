// The options of a queue, and the deadline of a call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace forksight::ipc {

// memfd: a sealed memfd. Another process gets the memfd by inheritance or SCM_RIGHTS. The kernel frees the memory when
// the last user ends. named: a file of shm_open() with a random name. gc() removes the files that nobody uses any more.
enum class strategy : std::uint8_t { memfd, named };
// direct: the sending call itself puts the message into the segment, without a thread or a lock. thread: send_copy()
// puts the message on an unbounded private list, and a feeder thread sends it. CPython's multiprocessing.Queue works in
// this way, with the same hazards at fork() and _exit().
enum class feed : std::uint8_t { direct, thread };
// What becomes of a message whose consumer died with it. drop: the message is lost, so it is delivered at most once.
// redeliver: another consumer gets the message, so it is delivered at least once. release() acknowledges the message.
enum class on_death : std::uint8_t { drop, redeliver };
// What send() and acquire() do when there is no room. block: they wait. fail: they return `timeout` at once.
// drop_oldest: they drop the oldest message that no consumer has now. snapshot::dropped counts these messages.
enum class full : std::uint8_t { block, fail, drop_oldest };
// any: the handle becomes a producer with its first acquire(), and a consumer with its first receive(). caretaker: the
// handle is for parked messages, and can neither send nor receive. Such a handle does not count for unlink_at, and
// counts neither as a producer nor as a consumer.
enum class role : std::uint8_t { any, producer, consumer, caretaker };

struct options {
  std::uint32_t slots = 64;              // messages in the queue; rounded up to a power of two, 2 to 2^20
  std::uint32_t buffers = 64;            // 1 to 2^20
  std::size_t buffer_bytes = 64 * 1024;  // size of each buffer; rounded up to a multiple of 64
  strategy backing = strategy::memfd;
  feed feeding = feed::direct;
  on_death after_death = on_death::drop;
  full when_full = full::block;
  // how many microseconds a call spins before it sleeps; -1: no time if the process has one CPU, else 20
  std::int32_t spin_us = -1;
  std::uint32_t max_redeliver = 3;      // how often a message is delivered again; then it is parked
  std::uint32_t max_participants = 16;  // handles attached at the same time, 2 to 255
  // strategy::named: remove the name when this many handles are attached; 0: never
  std::uint32_t unlink_at = 0;
  // How many handles will be producers, and how many consumers, from the creation of the queue to its end, 0 to 4096. A
  // process that is started again counts again. receive() returns `closed` or `producer_died` only after this number of
  // producers has ended. send() and acquire() return `no_consumer` only after this number of consumers has ended. There
  // are two exceptions: shutdown() was called, or the creator died while it was neither a producer nor a consumer. Such
  // a creator supervises the others, and after its death nobody starts the missing ones. 0: the number is not known.
  // Then these errors come when the last attached producer or consumer has ended.
  std::uint32_t expected_producers = 0, expected_consumers = 0;
  // After the last producer or consumer has ended, calls wait this long for another one before they return `closed`,
  // `producer_died` or `no_consumer`. They do not wait if all expected producers or consumers have closed their handles
  // or called close_producer(). Each handle measures this time itself. The time begins when a call of the handle
  // notices that no producer or consumer is left.
  std::chrono::milliseconds grace{0};
  bool atfork_handlers = false;   // feed::thread: fork() takes the feeder's lock, and releases it in parent and child
  bool readonly_payload = false;  // only the creator may write into buffers
  bool holds_references = false;  // messages refer to other memory: `forksight queue drain` refuses the queue
  role as = role::any;            // role of the creator's own handle
};

// An instant of CLOCK_MONOTONIC after which a call gives up.
class deadline {
 public:
  using clock = std::chrono::steady_clock;
  constexpr deadline(clock::time_point at) : at_(at) {}
  static constexpr deadline never() { return deadline(clock::time_point::max()); }
  // A call with this deadline does not wait. The text of the call's error says only what is missing. inspect() says
  // which process has it.
  static constexpr deadline now() { return deadline(clock::time_point::min()); }
  // If the end of the span is beyond the range of the clock, this is never().
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
