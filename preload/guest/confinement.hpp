// Which system calls the shim may make. A seccomp filter may kill the process for a call that the program itself never
// makes. So under a filter the shim makes only calls that it knows to be harmless. Any other call is not made and fails
// with EPERM, as if the filter had refused it. The code that wanted to make the call then records less.
//   How the shim knows:
//   - If the program installs a filter by prctl() or syscall(), the shim reads the filter first (seccomp_filter.hpp).
//   - A filter that was there before the shim permits the dynamic loader's calls. A short-lived child tries out for
//     which other calls the filter kills. The shim makes this child when the program itself makes a process or a
//     thread.
//   - The shim does not see a filter that a program installs by its own `syscall` instruction.
//   async-signal-safe, fork-child-safe.
#pragma once

#include <cstdint>

namespace forksight {

enum class Confinement : std::uint8_t {
  kNone = 0,     // no filter: every call may be made
  kUnasked = 1,  // nothing is known yet
  kUntried = 2,  // a filter was there before the shim: only the dynamic loader's calls may be made
  kKnown = 3,    // there is a filter, and the shim knows which of its calls the filter refuses
};

extern Confinement g_confinement;
bool is_permitted_slow(long number);
inline bool is_permitted(long number) {
  return __builtin_expect(g_confinement == Confinement::kNone, 1) || is_permitted_slow(number);
}

// A set of system calls, by their numbers.
inline constexpr std::uint32_t kCallWords = 8;
struct CallSet {
  std::uint64_t words[kCallWords];

  void add(long number) { words[static_cast<std::uint64_t>(number) / 64 % kCallWords] |= bit(number); }
  void remove(long number) { words[static_cast<std::uint64_t>(number) / 64 % kCallWords] &= ~bit(number); }
  bool has(long number) const {
    const auto word = static_cast<std::uint64_t>(number) / 64;
    return word >= kCallWords || (words[word] & bit(number)) != 0;
  }

 private:
  static constexpr std::uint64_t bit(long number) {
    return std::uint64_t{1} << static_cast<std::uint64_t>(number) % 64;
  }
};

// Finds out whether there is a filter. Called by the initialiser. Takes a few microseconds.
void look_for_filter();

// Called when the program is about to make a process by clone(), or a thread by clone3(). The program makes that call
// anyway, so it adds no risk if the shim makes the same call first. If a filter was there before the shim, this
// function tries out in a child for which calls the filter kills. After one success, this function does nothing.
enum class TryBy { kClone, kClone3 };
void try_filter_slow(TryBy by);
inline void try_filter(TryBy by) {
  if (__builtin_expect(g_confinement == Confinement::kUntried, 0)) try_filter_slow(by);
}

// Stores this process's id. Called before a filter is installed, because the filter may forbid getpid().
void note_pid();
// Called when a filter was installed. From then on the shim makes none of the calls in `refused`.
void confine(const CallSet& refused);
// How many of the shim's calls must not be made.
std::uint32_t count_refused();

// Returns the id of the calling thread as libc knows it, without a system call. For use under a filter that forbids
// gettid() and getpid(). Set by the initialiser.
using ReadTid = std::int32_t (*)();
extern ReadTid g_read_tid;
// The first call of the shim in a forked child. Counts the fork in g_fork_depth. If there may be a filter, also stores
// the child's id, which is the id of its only thread.
void note_child_pid();
// The id that note_pid() or note_child_pid() stored last.
std::int32_t pid_when_confined();

}  // namespace forksight

// 1 if a filter kills for getpid(), or if that is not known yet. The hook of vfork() reads this byte.
extern "C" [[gnu::visibility("hidden")]] std::uint8_t forksight_refuses_getpid;
