#include "proc/reader_rights.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace forksight::proc {
namespace {

// Numbers of system calls that are missing in the oldest supported headers (Linux 4.19). They are the same on all
// architectures.
constexpr std::uint32_t kPidfdSendSignal = 424;
constexpr std::uint32_t kIoUringSetup = 425;
constexpr std::uint32_t kOpenTree = 428;
constexpr std::uint32_t kMoveMount = 429;
constexpr std::uint32_t kFsopen = 430;
constexpr std::uint32_t kFsconfig = 431;
constexpr std::uint32_t kFsmount = 432;
constexpr std::uint32_t kFspick = 433;
constexpr std::uint32_t kOpenat2 = 437;
constexpr std::uint32_t kProcessMadvise = 440;
constexpr std::uint32_t kMountSetattr = 442;
constexpr std::uint32_t kProcessMrelease = 448;
constexpr std::uint32_t kFchmodat2 = 452;
constexpr std::uint32_t kSetxattrat = 463;
constexpr std::uint32_t kRemovexattrat = 466;
constexpr std::uint32_t kOpenTreeAttr = 467;
constexpr std::uint32_t kFileSetattr = 469;
constexpr std::uint32_t kX32Bit = 0x40000000;

// Calls that change something outside of the process, whatever their arguments are.
constexpr std::array kAlwaysRefused = {
    // programs
    std::uint32_t{SYS_execve}, std::uint32_t{SYS_execveat},
    // calls whose effects the filter cannot see
    kOpenat2, kIoUringSetup, std::uint32_t{SYS_open_by_handle_at},
    // files
    std::uint32_t{SYS_creat}, std::uint32_t{SYS_truncate}, std::uint32_t{SYS_rename}, std::uint32_t{SYS_renameat},
    std::uint32_t{SYS_renameat2}, std::uint32_t{SYS_link}, std::uint32_t{SYS_linkat}, std::uint32_t{SYS_symlink},
    std::uint32_t{SYS_symlinkat}, std::uint32_t{SYS_unlink}, std::uint32_t{SYS_unlinkat}, std::uint32_t{SYS_mkdir},
    std::uint32_t{SYS_mkdirat}, std::uint32_t{SYS_rmdir}, std::uint32_t{SYS_mknod}, std::uint32_t{SYS_mknodat},
    std::uint32_t{SYS_chmod}, std::uint32_t{SYS_fchmod}, std::uint32_t{SYS_fchmodat}, kFchmodat2,
    std::uint32_t{SYS_chown}, std::uint32_t{SYS_fchown}, std::uint32_t{SYS_lchown}, std::uint32_t{SYS_fchownat},
    std::uint32_t{SYS_utime}, std::uint32_t{SYS_utimes}, std::uint32_t{SYS_futimesat}, std::uint32_t{SYS_utimensat},
    std::uint32_t{SYS_setxattr}, std::uint32_t{SYS_lsetxattr}, std::uint32_t{SYS_fsetxattr},
    std::uint32_t{SYS_removexattr}, std::uint32_t{SYS_lremovexattr}, std::uint32_t{SYS_fremovexattr}, kSetxattrat,
    kRemovexattrat, kFileSetattr, std::uint32_t{SYS_flock}, std::uint32_t{SYS_fanotify_init},
    std::uint32_t{SYS_mq_open}, std::uint32_t{SYS_mq_unlink}, std::uint32_t{SYS_shmget}, std::uint32_t{SYS_shmat},
    std::uint32_t{SYS_shmctl}, std::uint32_t{SYS_semget}, std::uint32_t{SYS_semop}, std::uint32_t{SYS_semtimedop},
    std::uint32_t{SYS_msgget}, std::uint32_t{SYS_msgsnd}, std::uint32_t{SYS_msgrcv},
    // other processes
    std::uint32_t{SYS_process_vm_writev}, kProcessMadvise, kProcessMrelease, std::uint32_t{SYS_tkill},
    std::uint32_t{SYS_rt_sigqueueinfo}, std::uint32_t{SYS_rt_tgsigqueueinfo}, kPidfdSendSignal,
    std::uint32_t{SYS_setpriority}, std::uint32_t{SYS_ioprio_set}, std::uint32_t{SYS_sched_setparam},
    std::uint32_t{SYS_sched_setscheduler}, std::uint32_t{SYS_sched_setattr}, std::uint32_t{SYS_migrate_pages},
    std::uint32_t{SYS_move_pages},
    // the machine
    std::uint32_t{SYS_mount}, std::uint32_t{SYS_umount2}, std::uint32_t{SYS_pivot_root}, std::uint32_t{SYS_chroot},
    kFsopen, kFsconfig, kFsmount, kFspick, kMoveMount, kOpenTree, kOpenTreeAttr, kMountSetattr,
    std::uint32_t{SYS_unshare}, std::uint32_t{SYS_syslog}, std::uint32_t{SYS_init_module},
    std::uint32_t{SYS_finit_module}, std::uint32_t{SYS_delete_module}, std::uint32_t{SYS_kexec_load},
    std::uint32_t{SYS_kexec_file_load}, std::uint32_t{SYS_reboot}, std::uint32_t{SYS_swapon},
    std::uint32_t{SYS_swapoff}, std::uint32_t{SYS_acct}, std::uint32_t{SYS_quotactl}, std::uint32_t{SYS_sethostname},
    std::uint32_t{SYS_setdomainname}, std::uint32_t{SYS_settimeofday}, std::uint32_t{SYS_clock_settime},
    std::uint32_t{SYS_clock_adjtime}, std::uint32_t{SYS_adjtimex}, std::uint32_t{SYS_iopl}, std::uint32_t{SYS_ioperm},
    std::uint32_t{SYS_bpf}, std::uint32_t{SYS_perf_event_open}, std::uint32_t{SYS_userfaultfd},
    std::uint32_t{SYS_add_key}, std::uint32_t{SYS_request_key}, std::uint32_t{SYS_keyctl}, std::uint32_t{SYS_vhangup}};

// The calls with which libdebuginfod writes its cache. They are allowed if a server is asked.
constexpr std::array kOfServer = {std::uint32_t{SYS_unlink}, std::uint32_t{SYS_mkdir},  std::uint32_t{SYS_rename},
                                  std::uint32_t{SYS_fchmod}, std::uint32_t{SYS_utimes}, std::uint32_t{SYS_utimensat},
                                  std::uint32_t{SYS_rmdir},  std::uint32_t{SYS_creat}};

// User ids that no account has. systemd's list of user ids (UIDS-GIDS.md) leaves the range of the first id unused. A
// user namespace may lack the first id. Most user namespaces have the second id, "nobody".
constexpr std::array<uid_t, 2> kUnusedUsers = {0x7fff0000, 65534};

using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
constexpr std::uint32_t bit(unsigned capability) { return std::uint32_t{1} << capability; }

constexpr std::uint32_t kChanges = O_ACCMODE | O_CREAT | O_TRUNC;

// The classic BPF program of the filter. It compares only the low 32 bits of an int argument, because the kernel uses
// no others. It compares both halves of a pointer or long.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    skip_unless(BPF_JEQ, AUDIT_ARCH_X86_64, 1);
    skip(1);
    refuse();
    load(offsetof(seccomp_data, nr));
    skip_unless(BPF_JGE, kX32Bit, 1);
    refuse();
  }

  void refuse_call(std::uint32_t number) {
    skip_unless(BPF_JEQ, number, 1);
    refuse();
  }

  // Allows the call only if the argument has one of these values.
  void allow_only(std::uint32_t number, unsigned argument, std::initializer_list<std::uint32_t> values) {
    begin_call(number);
    for (const std::uint32_t value : values) allow_if_equal(argument, value);
    end_call(SECCOMP_RET_ERRNO | EPERM);
  }
  // Refuses the call if the argument has one of these values.
  void refuse_only(std::uint32_t number, unsigned argument, std::initializer_list<std::uint32_t> values) {
    begin_call(number);
    load_argument(argument);
    for (const std::uint32_t value : values) {
      skip_unless(BPF_JEQ, value, 1);
      refuse();
    }
    end_call(SECCOMP_RET_ALLOW);
  }
  // Refuses the call if the argument has one of these bits.
  void refuse_bits(std::uint32_t number, unsigned argument, std::uint32_t bits) {
    begin_call(number);
    load_argument(argument);
    skip_unless(BPF_JSET, bits, 1);
    refuse();
    end_call(SECCOMP_RET_ALLOW);
  }
  // Allows the call only if each of two arguments has the given value.
  void allow_only_pair(std::uint32_t number, unsigned argument, std::uint32_t value, unsigned other,
                       std::uint32_t other_value) {
    begin_call(number);
    load_argument(argument);
    skip_unless(BPF_JEQ, value, 3);
    allow_if_equal(other, other_value);
    end_call(SECCOMP_RET_ERRNO | EPERM);
  }
  // Allows the call if the first argument is `self`, or if the argument with the number `other` is 0.
  void allow_for_self(std::uint32_t number, std::uint32_t self, unsigned other) {
    begin_call(number);
    allow_if_equal(0, self);
    allow_if_equal(other, 0);
    end_call(SECCOMP_RET_ERRNO | EPERM);
  }
  // Allows ptrace() with these requests, and with PTRACE_POKEUSER only for one value at one offset.
  void allow_ptrace(std::initializer_list<std::uint32_t> requests, std::uint32_t offset, std::uint64_t value) {
    begin_call(SYS_ptrace);
    for (const std::uint32_t request : requests) allow_if_equal(0, request);
    load_argument(0);
    skip_unless(BPF_JEQ, PTRACE_POKEUSER, 9);
    const auto compare = [this](unsigned argument, bool is_high, std::uint32_t wanted, std::uint8_t left) {
      load(argument_offset(argument) + (is_high ? 4U : 0U));
      skip_unless(BPF_JEQ, wanted, left);
    };
    compare(2, false, offset, 7);
    compare(2, true, 0, 5);
    compare(3, false, static_cast<std::uint32_t>(value), 3);
    compare(3, true, static_cast<std::uint32_t>(value >> 32U), 1);
    answer(SECCOMP_RET_ALLOW);
    end_call(SECCOMP_RET_ERRNO | EPERM);
  }

  bool install() {
    answer(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(program_.size()), program_.data()};
    // Without this flag, kernels before 5.16 guard the process against Spectre. This protection makes the process
    // slower.
    for (const unsigned flags : {unsigned{SECCOMP_FILTER_FLAG_SPEC_ALLOW}, 0U}) {
      if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return true;
    }
    return false;
  }

 private:
  static std::uint32_t argument_offset(unsigned argument) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
  }
  void add(unsigned code, std::uint32_t value, std::uint8_t yes = 0, std::uint8_t no = 0) {
    program_.push_back({static_cast<std::uint16_t>(code), yes, no, value});
  }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
  void load_argument(unsigned argument) { load(argument_offset(argument)); }
  void skip_unless(unsigned test, std::uint32_t value, std::uint8_t count) {
    add(BPF_JMP | test | BPF_K, value, 0, count);
  }
  void skip(std::uint32_t count) { add(BPF_JMP | BPF_JA, count); }
  void answer(std::uint32_t action) { add(BPF_RET | BPF_K, action); }
  void refuse() { answer(SECCOMP_RET_ERRNO | EPERM); }
  void allow_if_equal(unsigned argument, std::uint32_t value) {
    load_argument(argument);
    skip_unless(BPF_JEQ, value, 1);
    answer(SECCOMP_RET_ALLOW);
  }
  // Begins the rules of one call. end_call() adds the answer for all other arguments, and ends the rules.
  void begin_call(std::uint32_t number) {
    start_ = program_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, number);
  }
  void end_call(std::uint32_t otherwise) {
    answer(otherwise);
    program_[start_].jf = static_cast<std::uint8_t>(program_.size() - start_ - 1);
  }

  std::vector<sock_filter> program_;
  std::size_t start_ = 0;
};

}  // namespace

bool may_give_up_user() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Capabilities now{};
  if (::geteuid() != 0 || ::syscall(SYS_capget, &header, now.data()) != 0) return false;
  // Without CAP_KILL, this process could not end a process of another user, and PR_SET_PDEATHSIG would not end such a
  // process either.
  constexpr std::uint32_t kNeeded = bit(CAP_SYS_PTRACE) | bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_KILL);
  return (now[0].effective & kNeeded) == kNeeded;
}

namespace {

// The kernel does not apply `ulimit -u` to root. But the kernel applies this limit to the user whom this process gets.
// The threads of this process count against the limit.
void raise_process_limit() {
  constexpr rlimit kNone{RLIM_INFINITY, RLIM_INFINITY};
  rlimit now{};
  if (::setrlimit(RLIMIT_NPROC, &kNone) == 0 || ::getrlimit(RLIMIT_NPROC, &now) != 0) return;
  now.rlim_cur = now.rlim_max;
  ::setrlimit(RLIMIT_NPROC, &now);
}

}  // namespace

bool give_up_user(bool examines_processes) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Capabilities now{};
  if (::syscall(SYS_capget, &header, now.data()) != 0) return false;
  // capset() is needed below, but a filter of system calls may refuse it. So this call tries capset() without changing
  // anything.
  if (::syscall(SYS_capset, &header, now.data()) != 0) return false;
  raise_process_limit();
  const bool has_user = ::setgroups(0, nullptr) == 0 && ::prctl(PR_SET_KEEPCAPS, 1) == 0 &&
                        std::ranges::any_of(kUnusedUsers, [](uid_t user) {
                          return ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
                        });
  if (!has_user) return false;
  const std::uint32_t kept = examines_processes ? now[0].permitted & (bit(CAP_SYS_PTRACE) | bit(CAP_IPC_OWNER)) : 0;
  now = {};
  now[0].permitted = now[0].effective = kept;
  if (::syscall(SYS_capset, &header, now.data()) != 0) ::abort();
  return true;
}

bool give_up_changing(const ReaderNeeds& needs) {
  Filter filter;
  for (const std::uint32_t number : kAlwaysRefused) {
    const bool is_of_server = std::ranges::find(kOfServer, number) != kOfServer.end();
    if (!needs.is_server_asked || !is_of_server) filter.refuse_call(number);
  }
  if (!needs.is_server_asked) {
    filter.refuse_bits(SYS_open, 1, kChanges);
    filter.refuse_bits(SYS_openat, 2, kChanges);
    filter.allow_only_pair(SYS_socket, 0, AF_NETLINK, 2, NETLINK_SOCK_DIAG);
  }
  // image/stop.cpp writes this value: -ERESTARTNOHAND (include/linux/errno.h of Linux).
  filter.allow_ptrace({PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GETREGSET, PTRACE_DETACH}, offsetof(user, regs.rax),
                      static_cast<std::uint64_t>(-514));
  // Signal 0 only asks whether the process exists.
  const auto self = static_cast<std::uint32_t>(::getpid());
  filter.allow_for_self(SYS_kill, self, 1);
  filter.allow_for_self(SYS_tgkill, self, 2);
  // A descriptor can make the kernel send signals to any process.
  filter.refuse_only(SYS_fcntl, 1, {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE});
  // A descriptor of a terminal could be used to type for its user (TIOCSTI).
  filter.allow_only(SYS_ioctl, 1, {TCGETS, TIOCGWINSZ});
  filter.allow_only(SYS_prlimit64, 0, {0});
  filter.allow_only(SYS_sched_setaffinity, 0, {0});
  filter.allow_only(SYS_setns, 1, {CLONE_NEWNET});
  filter.allow_only(SYS_semctl, 2, {GETVAL, GETPID, IPC_STAT});
  filter.allow_only(SYS_msgctl, 1, {IPC_STAT});
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter.install();
}

}  // namespace forksight::proc
