// A fork, as all see it who take part in it, and the steps that they take. participants.def lists them.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

struct Fork {
  Slot& self;  // of the forking thread; its fork_site is where fork was called, until it is made
  ForkKind kind;
  std::uint32_t flags;     // trace::ForkFlag
  std::uint64_t record;    // ref to the kFork record; 0: not written, or not yet
  std::uint32_t runtimes;  // kRuntime records that belong to it
  std::uint32_t tasks;     // threads as the kernel counts them, this one included; 0: it was not asked
};

// A participant is a struct in namespace at_fork. For each step that its row names it has a static function of the
// step's name: enters() for kEnters, and so on.
enum ForkStep : std::uint32_t {
  // bool tells(): is there something to tell of a fork, also in a process with one thread? Asked at every fork.
  kTells = 1U << 0U,
  // void counts(): in our prepare handler of every fork, with or without something to tell.
  kCounts = 1U << 10U,
  // void enters(const Fork&): at the entry of fork(), before any atfork handler. May ask foreign code. Of kInLibc: in
  // our
  // own prepare handler, which runs last. Not of kBypassed.
  kEnters = 1U << 1U,
  // void prepares(Fork&): in our prepare handler, before the fork's record is written.
  kPrepares = 1U << 2U,
  // void records(const Fork&): the fork's record is written. The last row is nearest to the fork.
  kRecords = 1U << 3U,
  // No function: `prepares` and `records` are called at a kBypassed fork, too. They are async-signal-safe then, and
  // call
  // no foreign code.
  kAlsoBypassed = 1U << 4U,
  // void continues(const Fork&): in the parent after the fork, before the other libraries' handlers. Not of kBypassed.
  kContinues = 1U << 5U,
  // void reads(const Fork&): in the child, first of all: reads the frozen copy of the parent while the forking thread
  // still goes by its old thread id. fork-child-safe, as all that follows but kLeaves.
  kReads = 1U << 6U,
  // void starts(const Fork&): in the child, under the new thread id, before the other libraries' handlers.
  kStarts = 1U << 7U,
  // void starts_any(std::uint64_t record): the same, and also in the child of a fork that was not recorded: with 0.
  kStartsAny = 1U << 8U,
  // void leaves(const Fork&): in the child when fork() returns, after the other libraries' handlers. May call foreign
  // code. Of kWrapper alone.
  kLeaves = 1U << 9U,
};

}  // namespace forksight
