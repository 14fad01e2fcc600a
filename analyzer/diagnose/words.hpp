// The words for places, processes, threads, locks and times in sentences. The words are short. Files are named without
// folders. Addresses appear only for objects without a name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base_name.hpp"
#include "model/model.hpp"

namespace forksight::words {

using model::base_name;

// Says whose code a frame is in. kUser: the program and its own libraries. kLibrary: a library, in C or Python, that a
// package installed. kRuntime: libc, the loader, the standard libraries of C++, Rust and Python, Python's interpreter,
// an OpenMP runtime, the CUDA driver, forksight, or unknown code.
enum class Whose { kUser, kLibrary, kRuntime };
Whose whose(const model::Frame& frame);
// Names the code to which a frame belongs: "libtorch_cpu.so.1.13", "multiprocessing", "the C++ library". A report shows
// this name in place of frames that it leaves out.
std::string code_of(const model::Frame& frame);

// Returns the innermost of the user's frames; null if there is none. Here and in the next functions, the user's frames
// are all frames that are not kRuntime.
const model::Frame* find_user_frame(const model::Stack& stack);
// Returns the range [first, last) from the innermost to the outermost of the user's frames, with all frames between
// them. The range is empty if there is no frame of the user.
std::pair<std::size_t, std::size_t> find_user_part(const model::Stack& stack);

// Returns all of the user's frames, innermost first. Leaves out frames that were found only by scanning the stack.
std::vector<const model::Frame*> find_user_frames(const model::Stack& stack);

// Returns the index of the innermost frame at a line of the program itself (kUser). If the program called a library,
// the user recognises that line. If there is no such frame, returns the index of the frame that find_user_frame()
// returns.
std::size_t find_user_line(const model::Stack& stack);

// Returns the stack without its innermost frames. The result begins with the innermost of the user's frames that is not
// an operation of a lock ("SpinLock::lock"). Returns the whole stack if there is no such frame. Use this for locks that
// the user implemented, because the places that use such a lock say more than the functions of the lock.
model::Stack without_lock_functions(const model::Stack& stack);

// Returns the place of the user's code on the stack: "app.c:31", "work in libfoo.so", "libfoo.so+0x12f0",
// "train.py:7, work in libfoo.so"; "" if nothing is known.
std::string place(const model::Stack& stack);
// Returns `before` and place(), such as " at app.c:31" for at(" at ", stack); "" if place() is "".
std::string at(std::string_view before, const model::Stack& stack);
// Returns the place of the innermost of the user's frames outside of the library of `owner`.
std::string place_outside_of(const model::Stack& stack, model::Owner owner);
// Returns place() with the function: "app.c:31 (work)".
std::string place_with_function(const model::Stack& stack);

// Returns the name of the file in shared memory that holds the futex word: "sem.mp-x7q2".
std::string shared_file_name(const model::Wait& wait);

// Returns "child 4242", or "child 4242 of rank 3"; "process 4242" if it is not known that a fork made the process.
std::string process(const model::Process& process, bool is_forked);
// Names the process that called fork(): "process 4242"; "an ancestor" if it is not certain which process called it.
std::string parent(const model::Process& process);
// Returns "thread 4240 \"worker\""; "another thread" if the tid is not known.
std::string thread(const model::Thread& thread);
// Returns text such as " (a worker of FFTW)"; "" for a thread of the program's own.
std::string worker_of(const model::Thread& thread);
std::string name_in_quotes(std::string_view name);  // " \"name\""; "" if the name is empty

// Names a lock: "cache_mu", "the mutex at 0x55d0c0", "the mutex at 0x7f40 (/dev/shm/queue+0x40)".
std::string lock(const model::Lock& lock);
// Returns the variable that a guard variable guards: "static table of shop::prices" for "guard variable for
// shop::prices::table".
std::string static_variable(std::string_view guard);
// Returns the kind of the lock: "mutex", "robust recursive mutex", "rwlock".
std::string lock_kind(const model::Lock& lock);

// Lists the signals of a set: "SIGINT, SIGTERM, signal 34". Bit 0 of the set is signal 1.
std::string signals(std::uint64_t set);

// Names what a thread waited for: "condition variable queue_cv", "the barrier at 0x55d0c0",
// "the end of thread 4240 \"worker\"".
std::string awaited(const model::Model& model, const model::LostWait& wait);

// Returns the duration in words: "1.4 s", "3 min 20 s", "2 h 5 min".
std::string duration(std::uint64_t ms);
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
// Returns the number and the word that fits: "1 thread", "3 threads".
std::string count(std::uint64_t number, std::string_view one, std::string_view many);

// True if the frame belongs to Python's standard library, and not to an installed package.
bool is_python_library(const model::Frame& frame);
// True if the kernel called a signal handler somewhere on this stack.
bool is_in_signal_handler(const model::Stack& stack);

bool is_python(const model::Process& process);
// Names what could still end the wait of a process: "a handler of SIGTERM"; "a signal handler" if forksight can name
// nothing.
std::string ways_out(const model::Process& process);
// True if the stack shows a wait for a lock object of CPython.
bool is_python_lock(const model::Stack& stack);
// True if the semaphore for which this stack waits belongs to a lock object of CPython. The interpreter uses semaphores
// only inside of its locks. So if the interpreter's functions have no names, it is enough that the interpreter itself
// called sem_wait().
bool is_python_semaphore(const model::Stack& stack);

}  // namespace forksight::words
