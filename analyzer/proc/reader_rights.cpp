#include "proc/reader_rights.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forksight::proc {
namespace {

// Numbers of system calls that the oldest supported headers lack (Linux 4.19). They are the same on all architectures.
constexpr std::uint32_t kPidfdSendSignal = 424;
constexpr std::uint32_t kIoUringSetup = 425;
constexpr std::uint32_t kFsmount = 432;
constexpr std::uint32_t kMoveMount = 429;
constexpr std::uint32_t kOpenTree = 428;
constexpr std::uint32_t kOpenat2 = 437;
constexpr std::uint32_t kProcessMadvise = 440;
constexpr std::uint32_t kMountSetattr = 442;
constexpr std::uint32_t kProcessMrelease = 448;
constexpr std::uint32_t kFchmodat2 = 452;
constexpr std::uint32_t kSetxattrat = 463;
constexpr std::uint32_t kRemovexattrat = 466;
constexpr std::uint32_t kX32Bit = 0x40000000;

// Calls that change something outside of the process, whatever their arguments are.
constexpr std::array kAlwaysRefused = {
    // programs
    std::uint32_t{SYS_execve}, std::uint32_t{SYS_execveat},
    // calls that the filter cannot look into
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
    kRemovexattrat, std::uint32_t{SYS_fanotify_init}, std::uint32_t{SYS_mq_open}, std::uint32_t{SYS_mq_unlink},
    std::uint32_t{SYS_shmget}, std::uint32_t{SYS_shmat}, std::uint32_t{SYS_shmctl}, std::uint32_t{SYS_semget},
    std::uint32_t{SYS_semop}, std::uint32_t{SYS_semtimedop}, std::uint32_t{SYS_msgget}, std::uint32_t{SYS_msgsnd},
    std::uint32_t{SYS_msgrcv},
    // other processes
    std::uint32_t{SYS_process_vm_writev}, kProcessMadvise, kProcessMrelease, std::uint32_t{SYS_tkill},
    std::uint32_t{SYS_rt_sigqueueinfo}, std::uint32_t{SYS_rt_tgsigqueueinfo}, kPidfdSendSignal,
    std::uint32_t{SYS_setpriority}, std::uint32_t{SYS_ioprio_set}, std::uint32_t{SYS_sched_setparam},
    std::uint32_t{SYS_sched_setscheduler}, std::uint32_t{SYS_sched_setattr}, std::uint32_t{SYS_migrate_pages},
    std::uint32_t{SYS_move_pages},
    // the machine
    std::uint32_t{SYS_mount}, std::uint32_t{SYS_umount2}, std::uint32_t{SYS_pivot_root}, std::uint32_t{SYS_chroot},
    kFsmount, kMoveMount, kOpenTree, kMountSetattr, std::uint32_t{SYS_unshare}, std::uint32_t{SYS_init_module},
    std::uint32_t{SYS_finit_module}, std::uint32_t{SYS_delete_module}, std::uint32_t{SYS_kexec_load},
    std::uint32_t{SYS_kexec_file_load}, std::uint32_t{SYS_reboot}, std::uint32_t{SYS_swapon},
    std::uint32_t{SYS_swapoff}, std::uint32_t{SYS_acct}, std::uint32_t{SYS_quotactl}, std::uint32_t{SYS_sethostname},
    std::uint32_t{SYS_setdomainname}, std::uint32_t{SYS_settimeofday}, std::uint32_t{SYS_clock_settime},
    std::uint32_t{SYS_clock_adjtime}, std::uint32_t{SYS_adjtimex}, std::uint32_t{SYS_iopl}, std::uint32_t{SYS_ioperm},
    std::uint32_t{SYS_bpf}, std::uint32_t{SYS_perf_event_open}, std::uint32_t{SYS_userfaultfd},
    std::uint32_t{SYS_add_key}, std::uint32_t{SYS_request_key}, std::uint32_t{SYS_keyctl}, std::uint32_t{SYS_vhangup}};

// Without a server, the cache of libdebuginfod is not written either.
constexpr std::array kOfServer = {std::uint32_t{SYS_unlink}, std::uint32_t{SYS_mkdir},  std::uint32_t{SYS_rename},
                                  std::uint32_t{SYS_fchmod}, std::uint32_t{SYS_utimes}, std::uint32_t{SYS_utimensat},
                                  std::uint32_t{SYS_rmdir},  std::uint32_t{SYS_creat}};

constexpr std::uint32_t kChanges = O_ACCMODE | O_CREAT | O_TRUNC;

// The classic BPF program of the filter. It compares the low 32 bits of an argument, which are all that the kernel uses
// of the int arguments below; a pointer or long is compared in both halves.
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

  // Begins the rules of one call. `end_call` ends them.
  void begin_call(std::uint32_t number) {
    start_ = program_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, number);
  }
  void allow_if_equal(unsigned argument, std::uint32_t value) {
    load_argument(argument);
    skip_unless(BPF_JEQ, value, 1);
    allow();
  }
  void refuse_if_any_bit(unsigned argument, std::uint32_t bits) {
    load_argument(argument);
    skip_unless(BPF_JSET, bits, 1);
    refuse();
  }
  void allow_if_equal(unsigned argument, std::uint32_t value, unsigned other, std::uint32_t other_value) {
    load_argument(argument);
    skip_unless(BPF_JEQ, value, 3);
    load_argument(other);
    skip_unless(BPF_JEQ, other_value, 1);
    allow();
  }
  // Write of one value to one register: ptrace(PTRACE_POKEUSER, tid, offset, value).
  void allow_poke(std::uint32_t offset, std::uint64_t value) {
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
    allow();
  }
  void end_call(bool is_refused) {
    if (is_refused) {
      refuse();
    } else {
      allow();
    }
    program_[start_].jf = static_cast<std::uint8_t>(program_.size() - start_ - 1);
  }

  bool install() {
    allow();
    const sock_fprog program{static_cast<unsigned short>(program_.size()), program_.data()};
    // Without this flag, kernels before 5.16 make the process slower to guard against Spectre.
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
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  void refuse() { add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM); }

  std::vector<sock_filter> program_;
  std::size_t start_ = 0;
};

}  // namespace

bool give_up_changing(const ReaderNeeds& needs) {
  Filter filter;
  const auto is_of_server = [](std::uint32_t number) {
    for (const std::uint32_t one : kOfServer) {
      if (one == number) return true;
    }
    return false;
  };
  for (const std::uint32_t number : kAlwaysRefused) {
    if (!needs.is_server_asked || !is_of_server(number)) filter.refuse_call(number);
  }
  if (!needs.is_server_asked) {
    filter.begin_call(SYS_open);
    filter.refuse_if_any_bit(1, kChanges);
    filter.end_call(false);
    filter.begin_call(SYS_openat);
    filter.refuse_if_any_bit(2, kChanges);
    filter.end_call(false);
    filter.begin_call(SYS_socket);
    filter.allow_if_equal(0, AF_NETLINK, 2, NETLINK_SOCK_DIAG);
    filter.end_call(true);
  }
  filter.begin_call(SYS_ptrace);
  for (const std::uint32_t request : {std::uint32_t{PTRACE_SEIZE}, std::uint32_t{PTRACE_INTERRUPT},
                                      std::uint32_t{PTRACE_GETREGSET}, std::uint32_t{PTRACE_DETACH}}) {
    filter.allow_if_equal(0, request);
  }
  // image/stop.cpp writes this value: -ERESTARTNOHAND (include/linux/errno.h of Linux).
  filter.allow_poke(offsetof(user, regs.rax), static_cast<std::uint64_t>(-514));
  filter.end_call(true);
  const auto self = static_cast<std::uint32_t>(::getpid());
  for (const std::uint32_t call : {std::uint32_t{SYS_kill}, std::uint32_t{SYS_tgkill}}) {
    filter.begin_call(call);
    filter.allow_if_equal(0, self);
    filter.allow_if_equal(call == SYS_kill ? 1 : 2, 0);  // only asks whether it exists
    filter.end_call(true);
  }
  filter.begin_call(SYS_prlimit64);
  filter.allow_if_equal(0, 0);
  filter.end_call(true);
  filter.begin_call(SYS_setns);
  filter.allow_if_equal(1, CLONE_NEWNET);
  filter.end_call(true);
  filter.begin_call(SYS_semctl);
  for (const std::uint32_t command : {std::uint32_t{GETVAL}, std::uint32_t{GETPID}, std::uint32_t{IPC_STAT}})
    filter.allow_if_equal(2, command);
  filter.end_call(true);
  filter.begin_call(SYS_msgctl);
  filter.allow_if_equal(1, IPC_STAT);
  filter.end_call(true);
  // A descriptor of a terminal could be used to type for its user (TIOCSTI).
  filter.begin_call(SYS_ioctl);
  filter.allow_if_equal(1, TCGETS);
  filter.allow_if_equal(1, TIOCGWINSZ);
  filter.end_call(true);
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter.install();
}

}  // namespace forksight::proc
