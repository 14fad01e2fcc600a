// Recognises a thread that waits for the global lock of CPython (GIL), and finds the holder.
//
// Such a thread sleeps in a condition variable of the GIL, for some milliseconds at a time (sys.setswitchinterval).
// Then it looks whether the GIL is still taken, and sleeps again. It never gives up: each sleep has a timeout, but the
// wait as a whole has none. Source: take_gil() in Python/ceval_gil.h, since 3.12 in Python/ceval_gil.c.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "proc/futex_word.hpp"
#include "proc/mappings.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

struct GilWait {
  std::uint64_t gil = 0;    // address of the GIL's struct _gil_runtime_state
  std::int32_t holder = 0;  // the tid of the holder, as the holder's struct pthread has it
};

// True if the system call may be one of the sleeps of a wait for a GIL.
bool is_timed_private_wait(const Syscall& call);

// Finds the GIL that a thread in this call waits for. nullopt: the thread does not wait for a GIL, nobody holds the
// GIL, or the layout of the GIL is not the one of CPython 3.9 to 3.15. A pure function.
std::optional<GilWait> find_gil_wait(const Syscall& call, abi::Version libc, const ReadWord& read);

// True if the file name is the name of a Python program or of libpython.
bool is_python_file(std::string_view path);

// True if `address` is in the variables of a CPython interpreter: in the data of a Python program or of libpython.
bool is_data_of_python(const std::vector<Mapping>& mappings, std::uint64_t address);

}  // namespace forksight::proc
