// Finds what could end the waits of threads: the processes at the other end of what the threads read, write or poll;
// the holder of the lock; processes with the same memory; the awaited child; a timeout; signals with handlers;
// processes outside of the tree; and the command that lets a stopped or frozen process run again. These lists are for
// people, and for rules that name a suspect. Proofs use wakers.hpp instead. Nothing here changes a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "files/reader.hpp"
#include "model/model.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/thread_sample.hpp"
#include "watch/tree.hpp"

namespace forksight::watch {

// A thread, and what was seen of its wait.
struct Waiter {
  std::int32_t pid = 0;
  proc::ThreadSample thread;
  model::Wait wait;
};

// Fills all fields of the `wait` of each waiter, except those that a proof adds. Searches the descriptors of all
// processes of the machine, once for all waiters together. `tables`: what was read of them already. Searches the processes of `tree` for two more things:
// processes that a waiter traces, and holders of file locks.
void find_waits(const files::Reader& reader, std::vector<Waiter>& waiters, const Tree& tree,
                proc::DescriptorTables& tables);

// Returns the zombies of a process: children that have ended, and for which the process has not yet called wait().
std::vector<model::Zombie> find_zombies(std::int32_t pid);
// True if the process has waited for the end of some child since it was forked.
bool has_reaped(std::int32_t pid);

// The value of "syscw" of /proc/PID/io: the number of write calls since the process was forked. nullopt: the text has
// no such value. Pure.
std::optional<std::uint64_t> parse_write_calls(std::string_view io);

}  // namespace forksight::watch
