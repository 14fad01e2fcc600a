// The global lock of CPython (GIL), as a thread shows it that waits for it.
//
// Such a thread sleeps in a condition variable of the GIL for some milliseconds at a time (sys.setswitchinterval), looks
// whether the GIL is still taken, and sleeps again. It never gives up: its wait is one without a timeout, though each of
// its sleeps has one. Python/ceval_gil.h, take_gil(); since 3.12 Python/ceval_gil.c.
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
  std::uint64_t gil = 0;    // address of its struct _gil_runtime_state
  std::int32_t holder = 0;  // the thread that has it, by the number in its own struct pthread
};

// One sleep of such a wait, as far as the call tells.
bool is_timed_private_wait(const Syscall& call);

// Pure. What a thread in this call waits for; nullopt: it does not wait for a GIL, nobody has that, or its layout is not
// the one of CPython 3.9 to 3.15.
std::optional<GilWait> find_gil_wait(const Syscall& call, abi::Version libc, const ReadWord& read);

// By its name: a program python3, or libpython3.
bool is_python_file(std::string_view path);

// The variables of a CPython interpreter are there: of a program python3 or of libpython3.
bool is_data_of_python(const std::vector<Mapping>& mappings, std::uint64_t address);

}  // namespace forksight::proc
