// Open files that both sides of a fork use as if each side had them alone, and random numbers that both draw from one
// state. Part of the model: see model.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

enum class ShareKind { kEpoll, kConnection };

enum class ShareUseKind {
  kRemoved,   // kEpoll: a descriptor that this process had not added
  kMissed,    // kEpoll: the owner waits, has the file open, and gets no events of it any more
  kSent,      // kConnection: by another process than the one that used it last
  kReceived,  // kConnection: as kSent
};

struct ShareUse {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::optional<ForkId> fork;  // the fork that made the process; none: the first process of its trace
  ShareUseKind kind = ShareUseKind::kRemoved;
  bool owner_waits = false;  // kRemoved: the owner is in a wait at this instant, with the file open
  bool under_lock = false;   // kSent, kReceived: while it held a lock that processes share
  int target = -1;           // kRemoved, kMissed
  std::string target_kind;   // "socket", "pipe", "file", "descriptor"
  Stack stack;
};

// An open file that a process had at a fork, so that all its forked children have it, too.
struct Share {
  ForkId fork = 0;  // the first one
  ProcessId owner = 0;
  ShareKind kind = ShareKind::kEpoll;
  int fd = -1;
  std::string peer;            // kConnection: "10.0.0.7:5432", "/run/db.sock"; "" if unknown
  std::vector<ShareUse> uses;  // in the order of time
};

enum class Generator { kRandom, kDrand48 };

// The first number that a forked child drew, from the state that it inherited from its parent.
struct Draw {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::optional<ForkId> fork;  // none: the fork was not recorded
  Generator generator = Generator::kRandom;
  std::uint64_t value = 0;
  Stack stack;
};

}  // namespace forksight::model
