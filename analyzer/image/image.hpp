// Everything that is known about a process: its memory, its mappings, its threads, and what each thread does. It is
// filled from a live process (live.hpp) or from a core file (core.hpp). All code that explains a hang reads this
// struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "image/memory.hpp"
#include "proc/proc_text.hpp"
#include "symbols/registers.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

struct Thread {
  std::int32_t tid = 0;
  // its tid in its own pid namespace, which is the tid that the memory of the process contains; 0: the same as `tid`
  std::int32_t own_tid = 0;
  std::string name;               // "": the core does not have it
  char state = '?';               // as in /proc/PID/stat; in a core: S if the thread is in a system call, else R
  std::uint64_t start_ticks = 0;  // 0: unknown
  bool has_ended = false;         // a zombie: it has no stack and no call
  // By DWARF number; kReturnAddress is the exact pc. If the thread was not stopped, only rsp and pc are known. If it
  // has ended, no register is known.
  std::optional<symbols::KeptRegisters> registers;
  std::uint64_t fs_base = 0;  // pthread_self() on x86-64; 0: unknown
  // The system call in which the thread is blocked. In a core, the call is decoded from the registers, if pc is right
  // behind a syscall instruction.
  std::optional<proc::Syscall> call;
  // Only if the thread had moved since the first look: its stack from rsp upward, read while the thread was stopped.
  // Empty: the thread had not moved, so its stack can be read from the image's memory.
  std::vector<std::byte> stack;
};

inline std::int32_t own_number(const Thread& thread) { return thread.own_tid != 0 ? thread.own_tid : thread.tid; }

struct Image {
  std::int32_t pid = 0;
  std::int32_t ppid = 0;
  // Only for a core: the process `ppid` leads the process group of this process. So `ppid` is an ancestor, and not a
  // process that adopted this one when its parent ended.
  bool is_parent_of_group = false;
  // Only for a live process: `ppid` runs another program, or the same program at other addresses. So either `ppid`
  // adopted this process when its parent ended, or one of the two has called exec since the fork.
  bool has_other_parent = false;
  std::uint64_t start_ticks = 0;  // 0: unknown
  // The memory may have thread ids of two pid namespaces (proc::has_numbers_of_two_namespaces()). So the owner that a
  // lock names may be a thread of the process, or a thread that a fork left behind.
  bool has_two_numberings = false;
  std::string exe;
  std::vector<std::string> cmdline;
  std::vector<proc::Mapping> mappings;   // ascending
  std::vector<symbols::Module> modules;  // the ELF files among `mappings`
  std::vector<Thread> threads;           // main thread first, then ascending
  std::shared_ptr<const Memory> memory;  // null: the process was not opened (live.hpp, core.hpp)
  std::vector<std::string> limits;       // what could not be seen; one sentence for each
  abi::Libc libc;                        // the libc that the process uses, as far as it is known
  // The image comes from a core. So the state of the kernel is not known: descriptors, other processes.
  bool is_core = false;
  // only for a core: the signal that caused it; 0: none, somebody asked for the core
  std::int32_t signal = 0;
  std::int32_t signal_tid = 0;  // the thread that got this signal

  // Returns the thread whose tid in its own pid namespace is `own`; null if there is none.
  const Thread* find_own(std::int32_t own) const;
  // Returns the tid, as forksight sees it, of the thread that find_own() finds. Returns `own` itself if there is no
  // such thread any more.
  std::int32_t tid_of(std::int32_t own) const;
  // The opposite of tid_of().
  std::int32_t own_number_of(std::int32_t tid) const;
  // Returns the pid that the process has in its own pid namespace.
  std::int32_t own_pid() const;
  // Returns the mapping that contains `address`; null if none does.
  const proc::Mapping* mapping_of(std::uint64_t address) const;
};

}  // namespace forksight::image
