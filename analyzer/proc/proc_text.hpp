// Parsers for the texts of /proc. Pure functions. The text of another process's /proc entry is hostile input: a thread
// can choose its own name, for example. So a parser fails instead of guessing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::proc {

// /proc/PID/task/TID/syscall
struct Syscall {
  bool running = false;  // the thread was on a processor, or about to be
  // blocked inside a system call; false: running, or blocked elsewhere (page fault, signal stop)
  bool in_syscall = false;
  std::int64_t number = -1;
  std::array<std::uint64_t, 6> args{};
  std::uint64_t sp = 0;
  std::uint64_t pc = 0;
  friend bool operator==(const Syscall&, const Syscall&) = default;
};
std::optional<Syscall> parse_syscall(std::string_view text);
// Converts an argument that the kernel reads as an int. The upper half of its register has no meaning.
constexpr std::int32_t as_int(std::uint64_t argument) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(argument));
}

// /proc/PID/stat or /proc/PID/task/TID/stat
struct Stat {
  std::int32_t pid = 0;
  std::string comm;
  char state = '?';
  std::int32_t ppid = 0;
  std::uint64_t flags = 0;         // PF_* of include/linux/sched.h
  std::uint64_t child_faults = 0;  // page faults of children that were waited for
  std::uint64_t cpu_ticks = 0;     // user + system
  std::uint64_t threads = 0;       // of the process, with its first thread even if that one has ended
  std::uint64_t start_ticks = 0;
  // The signal that the parent receives when the process ends; 0: none. SIGCHLD, unless clone() asked for another one.
  std::int32_t exit_signal = 0;
  std::optional<std::uint32_t> processor;  // the processor that the thread last ran on
};
// PF_FORKNOEXEC: the process has not called exec, so its memory is a copy of its parent's memory.
inline constexpr std::uint64_t kForkedWithoutExec = 0x40;
inline constexpr std::uint64_t kExiting = 0x4;            // PF_EXITING
inline constexpr std::uint64_t kKernelThread = 0x200000;  // PF_KTHREAD
std::optional<Stat> parse_stat(std::string_view text);
// True if all threads of the process have ended, and its parent has not waited for it. `stat`: from /proc/PID/stat.
bool is_zombie(const Stat& stat);

// /proc/PID/task/TID/status
struct Status {
  std::string name;
  char state = '?';
  std::int32_t tracer = 0;
  std::uint64_t pending = 0;         // for the thread
  std::uint64_t shared_pending = 0;  // for the process
  std::uint64_t blocked = 0;
  std::uint64_t caught = 0;
  std::uint64_t ignored = 0;
  std::uint64_t voluntary = 0;  // context switches
  std::uint64_t nonvoluntary = 0;
  std::int32_t own_tid = 0;  // the thread's number in its own pid namespace, which is the innermost one
  // the number of nested pid namespaces, from that of /proc to that of the thread, both counted; 1: the thread is in
  // the namespace of /proc
  std::uint32_t ns_depth = 1;
};
// nullopt if the text lacks a field, because a proof needs all fields. Only `own_tid` and `ns_depth` may be missing.
std::optional<Status> parse_status(std::string_view text);
// True if the thread has ended, is ending, or has a pending SIGKILL.
bool is_ending(const Stat& stat, const Status& status);

// One line of /proc/PID/maps.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::uint64_t offset = 0;  // the position of the mapping's start in the file
  std::string device;        // "fe:00"
  std::uint64_t inode = 0;   // 0: no file
  std::string path;
};
std::optional<Mapping> parse_mapping(std::string_view line);

// Numbers separated by white space, as in /proc/PID/task/TID/children. Words that are not pids are left out.
std::vector<std::int32_t> parse_pids(std::string_view text);

// Parses /proc/PID/timers. Returns the signals that POSIX timers send; bit 0 is signal 1.
std::uint64_t parse_timer_signals(std::string_view text);

// Returns the inode number in a link such as "pipe:[123]" or "socket:[123]".
std::optional<std::uint64_t> parse_pipe_link(std::string_view link);
std::optional<std::uint64_t> parse_socket_link(std::string_view link);
// Returns the name of a socket in links, such as "socket:[123]" for inode 123.
std::string name_socket(std::uint64_t inode);

// Parses a decimal number; nullopt if the text has anything else.
std::optional<std::int64_t> parse_decimal(std::string_view text);

// The value of "name:\t…" in texts such as /proc/PID/fdinfo/FD, without surrounding blanks.
std::optional<std::string_view> find_field(std::string_view text, std::string_view name);

}  // namespace forksight::proc
