// What glibc keeps of its threads: pthread_self() is the address of a struct pthread, which has the thread's tid.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"

namespace forksight::inspect {

// Where in struct pthread the tid is (forksight/abi/thread.hpp; a libc that is not known is asked for it: it is where
// all threads of the process have theirs). nullopt: no thread's pthread_self() is known.
std::optional<std::uint64_t> find_tid_offset(const image::Image& image);

// Sets Thread::own_tid of a core that was made from outside of its pid namespace: each thread has another tid in its
// struct pthread. One thread alone may have that from its parent, by a system call that makes a process, unless it was
// made by fork(), which puts it right.
void find_own_numbers(image::Image& core, bool is_forked);

// It asked to be cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS). False where that is not known.
bool may_be_cancelled_anywhere(const image::Image& image, const image::Thread& thread);

// The thread of `parent` that forked `child`: the child's first thread has its struct pthread, at the same address
// `pointer` (0: not known). 0: unknown, or `child` is no copy of `parent`.
std::int32_t find_forking_thread(const image::Image& child, std::uint64_t pointer, const image::Image& parent);

// Fills in `fs_base` of the first thread of `process`, one that was not stopped, from its forked child: where the
// child's memory has its own first thread, its parent has the thread that forked. Nothing if that was another one.
void find_pointer_by_child(image::Image& process, const image::Image& child);

// Do both run the same program, mapped at the same places: is one a fork of the other that has not called exec.
bool is_same_layout(const image::Image& one, const image::Image& other);

}  // namespace forksight::inspect
