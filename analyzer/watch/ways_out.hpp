// What can still end a wait that none of the tasks that are looked at will end: one rule for every kind of wait. It is
// asked by the proof (proof.hpp); docs/proven.md has the list, and what no look from outside can show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/evidence.hpp"
#include "watch/thread_graph.hpp"

namespace forksight::watch {

// Signals that some thread of a process would run a handler for; bit 0 is signal 1.
struct Handlers {
  std::uint64_t ways_out = 0;  // a handler may write, post, unlock, raise an exception or jump
  bool for_ctrl_c = false;     // beside these, Python's for SIGINT: there for a person, but it ends a wait all the same
};

// Signals with a handler that this thread would run, those that end no sleep left out: faults, and 32 and 33 of glibc.
std::uint64_t find_caught(const proc::Status& status);

// Left out: what each living thread blocks; faults, which no thread raises that sleeps (Rust and the JVM have handlers
// for them); libc's own signals; those that the shim answers.
Handlers find_handlers(const ProcessEvidence& evidence);

// By the file name of its program.
bool is_python_program(std::string_view exe);

// Why a thread that seems to sleep in its call does not: it is frozen, or held by a seccomp filter. "" if it does.
// `function`: what the kernel says that it sleeps in.
std::string_view find_hold(std::string_view function);
// The texts of /proc/PID/cgroup and of the files that are read at the paths found there. Pure.
std::vector<std::string> find_freezer_files(std::string_view cgroup);
bool is_frozen_text(std::string_view text);
// Some control group of the process, of version 1 or 2, is frozen.
bool is_frozen(std::int32_t pid);
// The shell command that lets a frozen process go on: it writes to the file of the control group that was told to
// freeze, which may be one above the process' own. "" if none is frozen.
std::string how_to_thaw(std::int32_t pid);

// "SIGTERM and SIGUSR1"
std::string name_signals(std::uint64_t signals);

// Whose way out could end the wait of each process, its own before those of others: itself, or one that it waits for
// over any number of steps. nullopt: nobody's. Parallel to `processes`; `has_one`: those that have one themselves.
std::vector<std::optional<std::size_t>> find_rescuers(const std::vector<ProcessWaits>& processes,
                                                      const std::vector<bool>& has_one);

}  // namespace forksight::watch
