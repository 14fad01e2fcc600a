// Open files that both sides of a fork use as if each side alone had the file. Also random numbers that both sides draw
// from the same state. Part of the model: see model.hpp.
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
  kRemoved,  // kEpoll: the process removed a descriptor that it had not added
  // kEpoll: the owner waits in the epoll instance and still has the file open, but gets no events of the file any more
  kMissed,
  // kConnection: a process sent, and the last sender before it was another process
  kSent,
  // kConnection: a process received, and the last receiver before it was another process
  kReceived,
};

struct ShareUse {
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::optional<ForkId> fork;  // the fork that made the process; none: the first process of its trace
  ShareUseKind kind = ShareUseKind::kRemoved;
  bool owner_waits = false;  // kRemoved: at the removal, the owner was in a wait and had the file open
  bool under_lock = false;   // kSent, kReceived: the process held a lock that processes share
  int target = -1;           // kRemoved, kMissed: the descriptor
  std::string target_kind;   // "socket", "pipe", "file", "descriptor"
  Stack stack;
};

// An open file that a process had at a fork. The child of that fork has the file, too, and so have the children of
// later forks.
struct Share {
  ForkId fork = 0;  // the first fork at which the process had the file
  ProcessId owner = 0;
  ShareKind kind = ShareKind::kEpoll;
  int fd = -1;
  std::string peer;            // kConnection: "10.0.0.7:5432", "/run/db.sock"; "" if unknown
  std::vector<ShareUse> uses;  // in order of time
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
