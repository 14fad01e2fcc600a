// Who or what could end the waits of threads: the other ends of what they read, write or poll, who holds the lock or
// has the same memory, the child that is awaited, time, signals with handlers, strangers, and whoever may let a stopped
// or frozen process go on. For people, and for rules that point at a suspect; what a proof rests on is in wakers.hpp.
// Reads only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "proc/thread_sample.hpp"
#include "watch/tree.hpp"

namespace forksight::watch {

// A thread, and what was seen of its wait.
struct Waiter {
  std::int32_t pid = 0;
  proc::ThreadSample thread;
  model::Wait wait;
};

// Fills all of `wait`, but for what a proof says. The descriptors of all processes are searched once for all waiters;
// `tree`: the processes among which children and holders of file locks are looked for, too.
void find_waits(std::vector<Waiter>& waiters, const Tree& tree);

// The children of a process that have ended, and for which nobody has waited.
std::vector<model::Zombie> find_zombies(std::int32_t pid);
// It has waited for the end of some child, since it was forked.
bool has_reaped(std::int32_t pid);

// The value of "syscw" of /proc/PID/io: calls that wrote, since the process was forked. nullopt: it is not there. Pure.
std::optional<std::uint64_t> parse_write_calls(std::string_view io);

}  // namespace forksight::watch
