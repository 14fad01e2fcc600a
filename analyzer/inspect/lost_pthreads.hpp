// Reads what the memory of a forked child shows of its fork. glibc counts forks, and the struct pthread of each lost
// thread stays where it was. This knowledge is needed if the parent cannot be examined, or if threads of the parent
// have ended since the fork.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "image/image.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

// Returns the number of fork() calls between the start of the program and this process: 1 for a child, 2 for a
// grandchild. The counter is found in the code of fork(), so no debug information is needed. _Fork() and clone() are
// not counted. nullopt: the number is not known, for example for a program without libpthread before glibc 2.34.
std::optional<std::uint64_t> count_forks(const image::Image& image, symbols::Symbolizer& symbolizer);

struct LostThread {
  std::uint64_t pointer = 0;  // pthread_self()
  // 0: fork() has erased the tid. fork() does not erase the tid of a thread whose stack glibc did not make.
  std::int32_t tid = 0;
  std::uint64_t start_routine = 0;  // 0: the first thread of the parent
  std::uint64_t argument = 0;       // the argument of the start routine
};

struct LostPthreads {
  std::vector<LostThread> threads;  // the threads that could be found, the eldest first
  bool is_known = false;            // the layout of the child's libc is known
  // All lost threads were found, and none had ended before the fork. False if the child has several threads now: a new
  // thread may use the stack of a lost thread.
  bool is_complete = false;
  bool first_forked = false;  // the first thread of the parent forked, so its tid is the parent's pid
  // Some struct pthreads have a tid although this process has no such thread. When a thread ends, the kernel erases its
  // tid. With glibc 2.43 the ending thread erases its own tid. fork() erases the tids of all lost threads. So these
  // struct pthreads belong to threads that were alive when _Fork() or clone() copied their process.
  bool bypassed = false;
};

// Searches the child's memory for its lost threads. With glibc versions other than 2.28 to 2.43, nothing is found.
LostPthreads find_lost_pthreads(const image::Image& child);

// Returns pthread_self() of the first thread: from its registers, or, if the thread was not stopped, from the struct
// pthread in memory that has its tid. 0: neither is known.
std::uint64_t find_first_pointer(const image::Image& image);

// True if the memory has only struct pthreads of threads that live in this process now. (glibc keeps the struct pthread
// of an ended thread together with its stack, to use them again.)
bool shows_no_other_thread(const image::Image& image);

// True if a thread that existed at the fork no longer exists in `parent`: the thread with this struct pthread and, if
// that is known, this start routine. Another thread may use the stack of the ended thread now.
bool has_ended_since(const image::Image& parent, std::uint64_t pointer,
                     std::optional<std::uint64_t> start_routine = std::nullopt);

}  // namespace forksight::inspect
