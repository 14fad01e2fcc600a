// Finds out what a thread has to do with a lock that does not record who holds it. The code of the functions on the
// thread's stack shows it: if the next thing that a function does with the lock is to release it, the thread is between
// taking the lock and releasing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbols/lock_functions.hpp"
#include "symbols/machine_state.hpp"
#include "symbols/symbols.hpp"
#include "symbols/unwinder.hpp"

namespace forksight::symbols {

class LockUses {
 public:
  // `memory` must outlive this object.
  LockUses(AddressSpace& space, const WordReader& memory) : space_(space), memory_(memory) {}

  // The lock that the thread is about to take, by the innermost call of a known function that takes locks. `registers`:
  // those of each frame of the walk.
  std::optional<AwaitedLock> find_awaited(const Walk& walk, const std::vector<Registers>& registers);

  struct Stand {
    LockStand::Kind kind = LockStand::Kind::kNone;
    std::size_t frame = 0;  // kHolds: the index of the function that will release the lock
  };
  Stand find_stand(const Walk& walk, const std::vector<Registers>& registers, std::uint64_t lock);

 private:
  enum class Match { kNo, kUnknown, kYes };
  // What code does with the lock, from some place on.
  enum class NextUse {
    kNothing,
    kReleases,  // on all paths that return
    kTakes,     // on some path it takes the lock first
    kLeaves,    // on some path it returns without a use of the lock, or this cannot be told
  };

  // The function that is called right before the frame's pc; null if it is none of the known ones.
  const LockFunction* find_call(const RawFrame& frame);
  // The registers right before the call that ends at the frame's pc.
  std::optional<MachineState> find_state_at_call(const RawFrame& frame, const Registers& registers);
  static std::optional<std::uint64_t> find_lock(const LockFunction& function, const MachineState& state);
  static Match is_about(const LockFunction& function, const MachineState& state, std::uint64_t lock);
  // With `is_any`, the release of a lock whose address is not known counts as well.
  NextUse find_next_use(const RawFrame& frame, const Registers& registers, std::uint64_t lock, bool is_any = false);
  // The function that a call or jump at `place` leads to; `end`: the run-time address behind it. "": not known.
  std::string find_target_name(const AddressSpace::Place& place, const FullInstruction& instruction, std::uint64_t end);

  AddressSpace& space_;
  const WordReader& memory_;
};

}  // namespace forksight::symbols
