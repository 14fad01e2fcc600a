// Reads what glibc keeps about its threads: pthread_self() is the address of a struct pthread, which has the thread's
// tid.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"

namespace forksight::inspect {

// Returns the offset of the tid in struct pthread (forksight/abi/thread.hpp). If the libc is not known, searches for
// the offset at which all threads of the process have their tid. nullopt: there is no such offset, or pthread_self() of
// no thread is known.
std::optional<std::uint64_t> find_tid_offset(const image::Image& image);

// Sets Thread::own_tid for a core that was made from outside of the pid namespace of its process. In such a core, the
// tid in each struct pthread differs from Thread::tid. If the process has a single thread and is not forked, does
// nothing: the bare system call may have made the process, and then the struct pthread has the tid of the parent's
// thread. (fork() writes the new tid there.)
void find_own_numbers(image::Image& core, bool is_forked);

// True if the thread allows cancellation at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS). False if that is not known.
bool may_be_cancelled_anywhere(const image::Image& image, const image::Thread& thread);

// Returns the tid of the thread of `parent` that forked `child`. The struct pthread of this thread has the same address
// as the struct pthread of the child's first thread. `pointer` is this address; 0: not known. Returns 0 if the tid is
// not known, or if `child` is not a copy of `parent`.
std::int32_t find_forking_thread(const image::Image& child, std::uint64_t pointer, const image::Image& parent);

// Sets `fs_base` of the first thread of `process`, if `fs_base` is not known because the thread was not stopped. The
// value is learned from a forked child: the child's first thread has the struct pthread of the thread that forked. Does
// nothing if a thread other than the first one of `process` forked the child.
void find_pointer_by_child(image::Image& process, const image::Image& child);

// True if both run the same program, and most of their modules are mapped at the same addresses. Then one is a forked
// copy of the other, or both are copies of a third process, and neither has called exec since.
bool is_same_layout(const image::Image& one, const image::Image& other);

}  // namespace forksight::inspect
