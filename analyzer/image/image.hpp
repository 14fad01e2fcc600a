// A process as evidence, whatever the source: its memory, its mappings, its threads and what each is doing. Filled from
// a live process (live.hpp) or from a core file (core.hpp). Everything that explains a hang reads it.
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
  std::int32_t own_tid = 0;       // in its own pid namespace, as its memory has it. 0: the same as `tid`
  std::string name;               // "" in a core that does not have it
  char state = '?';               // as in /proc/PID/stat; of a core S in a call, R elsewhere
  std::uint64_t start_ticks = 0;  // 0: unknown
  bool has_ended = false;         // a zombie: no stack, no call
  // By DWARF number; kReturnAddress is the exact pc. Without a stop only rsp and pc are known; none of an ended thread.
  std::optional<symbols::Registers> registers;
  std::uint64_t fs_base = 0;  // pthread_self() on x86-64; 0: unknown
  // the call it is blocked in; in a core: by the registers, if pc is behind a syscall
  std::optional<proc::Syscall> call;
  // From rsp upward, read together with the registers of a thread that was on its way. Empty: the memory has not moved.
  std::vector<std::byte> stack;
};

inline std::int32_t own_number(const Thread& thread) { return thread.own_tid != 0 ? thread.own_tid : thread.tid; }

struct Image {
  std::int32_t pid = 0;
  std::int32_t ppid = 0;
  // For a core: the process `ppid` leads its process group. So it is an ancestor, and did not adopt an orphan.
  bool is_parent_of_group = false;
  // For a live process: `ppid` is another program, or runs at other addresses. It adopted the orphan, or it has
  // called exec since it forked.
  bool has_other_parent = false;
  std::uint64_t start_ticks = 0;  // 0: unknown
  std::string exe;
  std::vector<std::string> cmdline;
  std::vector<proc::Mapping> mappings;   // ascending
  std::vector<symbols::Module> modules;  // ELF files among them
  std::vector<Thread> threads;           // main thread first, then ascending
  std::shared_ptr<const Memory> memory;  // never null
  std::vector<std::string> limits;       // what could not be seen, one sentence each
  abi::Libc libc;                        // what it runs on, as far as that is known
  bool is_core = false;                  // no kernel state: no descriptors, no other processes
  std::int32_t signal = 0;               // of a core: the signal it was dumped for; 0: none, it was made on request
  std::int32_t signal_tid = 0;           // the thread that got this signal

  // The thread whose memory calls it `own`; null if there is none.
  const Thread* find_own(std::int32_t own) const;
  // Its tid; `own` itself if that thread no longer exists.
  std::int32_t tid_of(std::int32_t own) const;
  // `pid` as its own pid namespace numbers it.
  std::int32_t own_pid() const;
  // The mapping that holds `address`; null if none does.
  const proc::Mapping* mapping_of(std::uint64_t address) const;
};

}  // namespace forksight::image
