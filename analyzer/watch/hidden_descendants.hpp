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
  std::uint32_t ns_depth = 0;  // as in proc::Status; 0: not known
};

// If a parent ends, process 1 or a subreaper becomes the parent of its children. So this function goes up from a hidden
// process to a child of process 1 or of a subreaper. The hidden process counts if all of this is true:
// - Neither it nor any process on this way is older than the tree.
// - The last process on this way has the real user of a member. The way up from a later login (sshd) or from a service
//   ends at a process of root.
// - It is in the control groups of a member. A process can leave its groups only if it has the rights for that, or if
// an
//   administrator has given the groups to its user.
std::vector<HiddenProcess> find_hidden_descendants(const Tree& tree);

}  // namespace forksight::watch
