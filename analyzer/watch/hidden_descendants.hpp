// Finds processes that may descend from the run, although no member of the tree is their parent, and whose descriptors
// and memory the kernel does not show to forksight. ssh-agent is an example: it forks twice and protects itself
// (PR_SET_DUMPABLE). Such a process may have inherited the other end of a pipe, or shared memory without a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/tree.hpp"

namespace forksight::watch {

struct HiddenProcess {
  std::int32_t pid = 0;
  std::string comm;
};

// If a parent ends, process 1 or another ancestor of it adopts its children. So a process counts only if it and its
// ancestors, up to a process that may have adopted the last of them, are not older than the tree. That last one must
// also have the real user of a member: later logins (sshd) and services are no descendants, and belong to root. The
// process must be in the control groups of a member, because a process needs rights to leave its groups.
std::vector<HiddenProcess> find_hidden_descendants(const Tree& tree);

}  // namespace forksight::watch
