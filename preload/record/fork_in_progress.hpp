// A fork as all participants see it, and the steps that they take. participants.def lists the participants.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

struct Fork {
  Slot& self;  // slot of the forking thread; until the fork is made, its fork_site is where fork() was called
  ForkKind kind;
  std::uint32_t flags;     // trace::ForkFlag
  std::uint64_t record;    // ref to the kFork record; 0: not written, or not yet
  std::uint32_t runtimes;  // number of kRuntime records that belong to the fork
  std::uint32_t tasks;     // threads according to the kernel, this one included; 0: the kernel was not asked
};

// A participant is a struct in namespace at_fork. For each step that its row names, the struct has a static function of
// the step's name: enters() for kEnters, and so on.
enum ForkStep : std::uint32_t {
  // bool tells(): true if there is something to record about a fork, also in a process with one thread. Called at every
  // fork that is not kBypassed, in the order of the list, until one participant returns true.
  kTells = 1U << 0U,
  // void counts(): called in the shim's prepare handler, even if there is nothing to record about the fork.
  kCounts = 1U << 10U,
  // void enters(const Fork&): called at the beginning of fork(), before any atfork handler. May call foreign code. At a
  // kInLibc fork, enters() is called in the shim's own prepare handler, which runs last. Not called for kBypassed.
  kEnters = 1U << 1U,
  // void prepares(Fork&): called in the shim's prepare handler, before the fork's record is written.
  kPrepares = 1U << 2U,
  // void records(const Fork&): called in the shim's prepare handler, after the fork's record is written. The call for
  // the last row of the list is the last work of the shim before the fork.
  kRecords = 1U << 3U,
  // This flag has no function of its own. With this flag, `prepares` and `records` are also called at a kBypassed fork.
  // They are async-signal-safe then, and call no foreign code.
  kAlsoBypassed = 1U << 4U,
  // void continues(const Fork&): called in the parent after the fork, before the other libraries' handlers. Not called
  // for kBypassed.
  kContinues = 1U << 5U,
  // void reads(const Fork&): the first step in the child. Reads the frozen copy of the parent while the slot of the
  // forking thread still has its old thread id. This step and all later steps except kLeaves are fork-child-safe.
  kReads = 1U << 6U,
  // void starts(const Fork&): called in the child, under the new thread id, before the other libraries' handlers.
  kStarts = 1U << 7U,
  // void starts_any(std::uint64_t record): called in the child, before kStarts. Also called if the fork was not
  // recorded: then `record` is 0.
  kStartsAny = 1U << 8U,
  // void leaves(const Fork&): called in the child when fork() returns, after the other libraries' handlers. May call
  // foreign code. Called only for kWrapper.
  kLeaves = 1U << 9U,
};

}  // namespace forksight
