// The operations in which step_kill kills a process, and the messages that the queue may contain afterwards.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "invariants.hpp"

namespace forksight::ipc::test {

using numbers = std::vector<std::uint32_t>;
using namespace std::literals;

// The handle, the loans and the messages of the victim. The victim is killed, so their destructors do not run.
struct hands {
  queue handle;
  std::vector<loan> loans;
  std::vector<message> messages;
};

struct scenario {
  const char* name;
  // How many messages (numbers 1, 2, ...) are sent before the victim starts. `before` is the state of message 1 when
  // the victim starts.
  std::uint32_t queued;
  full when_full;
  void (*prepare)(hands&, const queue& inherited);
  void (*operate)(hands&, const queue& inherited);
  // The messages that the queue may contain afterwards. The lists left_by_... count if the victim died during the
  // operation. The lists after_... count if the victim died after the operation. A parked message has its number +
  // kParked.
  std::vector<numbers> left_by_drop, left_by_redeliver, after_drop, after_redeliver;
  enum class first : std::uint8_t { queued, parked, returned } before = first::queued;
  std::uint32_t max_redeliver = 3;
};

template <class T>
T need(result<T> got) {
  if (!got) _exit(9);
  return std::move(got).value();
}
inline void need(const result<void>& got) {
  if (!got) _exit(9);
}

inline void join(hands& of, const queue& inherited) { of.handle = need(inherited.reattach_after_fork()); }
inline void send_nine(hands& of, const queue&) {
  const std::uint32_t nine = 9;
  need(of.handle.send_copy(&nine, sizeof nine));
}
inline void receive_one(hands& of, const queue&) { of.messages.push_back(need(of.handle.receive())); }
inline void receive_parked(hands& of, const queue&) { of.messages.push_back(need(of.handle.receive_parked())); }

inline const std::vector<scenario> kScenarios = {
    {"send", 1, full::block, join, send_nine, {{1}, {1, 9}}, {{1}, {1, 9}}, {{1, 9}}, {{1, 9}}},
    {"send to an empty queue", 0, full::block, join, send_nine, {{}, {9}}, {{}, {9}}, {{9}}, {{9}}},
    {"send, dropping the oldest",
     2,
     full::drop_oldest,
     join,
     send_nine,
     {{1, 2}, {2}, {2, 9}},
     {{1, 2}, {2}, {2, 9}},
     {{2, 9}},
     {{2, 9}}},
    {"receive", 2, full::block, join, receive_one, {{1, 2}, {2}}, {{1, 2}}, {{2}}, {{1, 2}}},
    {"release",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_one(of, q);
     },
     [](hands& of, const queue&) { need(of.messages.back().release()); },
     {{2}},
     {{1, 2}, {2}},
     {{2}},
     {{2}}},
    {"give a loan back",
     1,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       of.loans.push_back(need(of.handle.acquire()));
     },
     [](hands& of, const queue&) { of.loans.clear(); },
     {{1}},
     {{1}},
     {{1}},
     {{1}}},
    {"receive in vain",
     0,
     full::block,
     join,
     [](hands& of, const queue&) {
       if (of.handle.receive(deadline::after(1ms))) _exit(9);
     },
     {{}},
     {{}},
     {{}},
     {{}}},
    {"attach", 2, full::block, [](hands&, const queue&) {}, join, {{1, 2}}, {{1, 2}}, {{1, 2}}, {{1, 2}}},
    {"close",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_one(of, q);
       need(of.messages.back().release());
     },
     [](hands& of, const queue&) { of.handle = {}; },
     {{2}},
     {{2}},
     {{2}},
     {{2}}},
    {"stop producing",
     1,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       send_nine(of, q);
     },
     [](hands& of, const queue&) { (void)of.handle.close_producer(); },
     {{1, 9}},
     {{1, 9}},
     {{1, 9}},
     {{1, 9}}},
    {"receive a message that is parked after one death",
     2,
     full::block,
     join,
     receive_one,
     {{1, 2}, {2}},
     {{1, 2}, {2, 101}},
     {{2}},
     {{2, 101}},
     scenario::first::queued,
     0},
    {"receive a returned message",
     2,
     full::block,
     join,
     receive_one,
     {{1, 2}, {2}},
     {{1, 2}},
     {{2}},
     {{1, 2}},
     scenario::first::returned},
    {"park",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_one(of, q);
     },
     [](hands& of, const queue&) { need(of.messages.back().park()); },
     {{2}, {2, 101}},
     {{1, 2}, {2, 101}},
     {{2, 101}},
     {{2, 101}}},
    {"receive a parked message",
     2,
     full::block,
     join,
     receive_parked,
     {{2, 101}},
     {{2, 101}},
     {{2, 101}},
     {{2, 101}},
     scenario::first::parked},
    {"release a parked message",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_parked(of, q);
     },
     [](hands& of, const queue&) { need(of.messages.back().release()); },
     {{2}, {2, 101}},
     {{2}, {2, 101}},
     {{2}},
     {{2}},
     scenario::first::parked},
    {"requeue",
     2,
     full::block,
     join,
     [](hands& of, const queue&) {
       if (need(of.handle.requeue()) != 1) _exit(9);
     },
     {{1, 2}, {2, 101}},
     {{1, 2}, {2, 101}},
     {{1, 2}},
     {{1, 2}},
     scenario::first::parked},
};

struct geometry_of_test {
  std::uint32_t slots, buffers, laps;
};
constexpr geometry_of_test kShapes[] = {{2, 3, 0}, {4, 2, 5}};

inline bool is_long(const scenario& what) { return what.name == "attach"sv || what.name == "receive in vain"sv; }
// True if the victim was already a producer (or consumer) before the operation. Then exactly one producer (or consumer)
// must have ended afterwards.
inline bool was_producer(const scenario& what) {
  return what.name == "give a loan back"sv || what.name == "stop producing"sv;
}
inline bool was_consumer(const scenario& what) {
  return what.name == "release"sv || what.name == "close"sv || what.name == "park"sv;
}
inline bool is_recovered_by_victims(const scenario& what) {
  for (const std::string_view name :
       {"send", "receive", "release", "receive a message that is parked after one death", "requeue"}) {
    if (what.name == name) return true;
  }
  return false;
}

}  // namespace forksight::ipc::test
