// What a forked child's own memory tells of its fork: glibc counts forks, and leaves the struct pthread of each thread
// that was lost where it was. For a child whose parent is not there to be looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "image/image.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

// How many calls of fork() lie between it and the program's start: 1 of a child, 2 of a grandchild. The counter is
// found in the code of fork(), so no debug information is needed. _Fork() and clone() do not count. nullopt: not known,
// as of a program without libpthread before glibc 2.34.
std::optional<std::uint64_t> count_forks(const image::Image& image, symbols::Symbolizer& symbolizer);

struct LostThread {
  std::uint64_t pointer = 0;        // pthread_self()
  std::int32_t tid = 0;             // 0: fork() has erased it; not of those whose stack glibc did not make
  std::uint64_t start_routine = 0;  // 0: the first thread of the parent
  std::uint64_t argument = 0;       // of that
};

struct LostPthreads {
  std::vector<LostThread> threads;  // the eldest first; those that could be found
  bool is_known = false;            // its libc is one of which this is known
  // All were found, and there was none that had ended before the fork. A thread that the child has made since may have
  // been given the stack of a lost one.
  bool is_complete = false;
  bool first_forked = false;  // the thread that forked was the parent's first, which has the parent's pid
  // Some have a tid still, though no such thread is here. The kernel erases that of one that ends (glibc 2.43: the
  // thread itself does), fork() all of them: they were those of the process that this one is a copy of, by _Fork().
  bool bypassed = false;
};

// Of glibc 2.28 to 2.43; of others nothing is found.
LostPthreads find_lost_pthreads(const image::Image& child);

// pthread_self() of the first thread: by its registers, or, where it was not stopped, by the struct pthread in memory
// that has its tid. 0: neither is known.
std::uint64_t find_first_pointer(const image::Image& image);

// Memory has the struct pthread of no other thread than those that live here now. (That of one that has ended is kept
// with its stack, for the next.)
bool shows_no_other_thread(const image::Image& image);

// The thread with this struct pthread, and with this start routine if that is known, is none of `parent`'s any more,
// though it was when that forked. Another thread may have its stack by now.
bool has_ended_since(const image::Image& parent, std::uint64_t pointer,
                     std::optional<std::uint64_t> start_routine = std::nullopt);

}  // namespace forksight::inspect
