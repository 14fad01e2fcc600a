// Expands participants.def: the function of each step calls the participants directly, one after the other.
#include "fork/participants.hpp"
#include "cuda/cuda.hpp"
#include "files/file_locks.hpp"
#include "files/shares.hpp"
#include "foresight/foresight.hpp"
#include "fork/atfork_run.hpp"
#include "fork/fork_turn.hpp"
#include "libc/libc_calls.hpp"
#include "libc/random_numbers.hpp"
#include "libc/streams.hpp"
#include "libc/unflushed.hpp"
#include "locks/lost_waiters.hpp"
#include "locks/orphans.hpp"
#include "mpi/mpi.hpp"
#include "openmp/omp_policy.hpp"
#include "python/python.hpp"
#include "record/module_records.hpp"
#include "signals/blocked.hpp"
#include "signals/timers.hpp"
#include "threads/fork_threads.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// Checks that a participant has exactly the functions that its row in the list names.
template <class P, std::uint32_t steps>
consteval bool row_is_whole() {
  return requires { &P::tells; }
  == ((steps & kTells) != 0) && requires { &P::counts; }
  == ((steps & kCounts) != 0) && requires { &P::enters; }
  == ((steps & kEnters) != 0) && requires { &P::prepares; }
  == ((steps & kPrepares) != 0) && requires { &P::records; }
  == ((steps & kRecords) != 0) && requires { &P::continues; }
  == ((steps & kContinues) != 0) && requires { &P::reads; }
  == ((steps & kReads) != 0) && requires { &P::starts; }
  == ((steps & kStarts) != 0) && requires { &P::starts_any; }
  == ((steps & kStartsAny) != 0) && requires { &P::leaves; }
  == ((steps & kLeaves) != 0);
}

#define FORKSIGHT_PARTICIPANT(name, steps) \
  static_assert(row_is_whole<at_fork::name, (steps)>(), "participants.def: the row and at_fork::" #name " differ");
#include "participants.def"
#undef FORKSIGHT_PARTICIPANT

template <class P, std::uint32_t steps>
inline bool tells() {
  if constexpr ((steps & kTells) != 0) return P::tells();
  return false;
}

template <class P, std::uint32_t steps>
inline void count() {
  if constexpr ((steps & kCounts) != 0) P::counts();
}

template <class P, std::uint32_t steps, ForkStep step>
inline void take(Fork& fork) {
  if constexpr ((steps & step) != 0) {
    if constexpr ((steps & kAlsoBypassed) == 0 && (step == kPrepares || step == kRecords)) {
      if (fork.kind == ForkKind::kBypassed) return;
    }
    if constexpr (step == kEnters) P::enters(fork);
    if constexpr (step == kPrepares) P::prepares(fork);
    if constexpr (step == kRecords) P::records(fork);
    if constexpr (step == kContinues) P::continues(fork);
    if constexpr (step == kReads) P::reads(fork);
    if constexpr (step == kStarts) P::starts(fork);
    if constexpr (step == kLeaves) P::leaves(fork);
  }
}

template <class P, std::uint32_t steps>
inline void start_any(std::uint64_t record) {
  if constexpr ((steps & kStartsAny) != 0) P::starts_any(record);
}

}  // namespace

bool tell_of_fork() {
  bool is_told = false;
#define FORKSIGHT_PARTICIPANT(name, steps) is_told = is_told || tells<at_fork::name, (steps)>();
#include "participants.def"
#undef FORKSIGHT_PARTICIPANT
  return is_told;
}

void count_fork() {
#define FORKSIGHT_PARTICIPANT(name, steps) count<at_fork::name, (steps)>();
#include "participants.def"
#undef FORKSIGHT_PARTICIPANT
}

template <ForkStep step>
void take_step(Fork& fork) {
#define FORKSIGHT_PARTICIPANT(name, steps) take<at_fork::name, (steps), step>(fork);
#include "participants.def"
#undef FORKSIGHT_PARTICIPANT
}

template void take_step<kEnters>(Fork&);
template void take_step<kPrepares>(Fork&);
template void take_step<kRecords>(Fork&);
template void take_step<kContinues>(Fork&);
template void take_step<kReads>(Fork&);
template void take_step<kStarts>(Fork&);
template void take_step<kLeaves>(Fork&);

void start_copies_in_child(std::uint64_t record) {
#define FORKSIGHT_PARTICIPANT(name, steps) start_any<at_fork::name, (steps)>(record);
#include "participants.def"
#undef FORKSIGHT_PARTICIPANT
}

}  // namespace forksight
