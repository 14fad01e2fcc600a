#include "blocked_process.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <thread>

#include "proc/proc_fs.hpp"

namespace forksight::test {

BlockedProcess::BlockedProcess(const std::function<long()>& call) {
  void* const shared = mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("mmap failed");
  outcome_ = new (shared) Outcome;
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  errno = 0;
  const long result = call();
  *outcome_ = {result, result < 0 ? errno : 0, true};
  _exit(0);
}

BlockedProcess::~BlockedProcess() {
  if (!is_reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  munmap(outcome_, sizeof(Outcome));
}

void BlockedProcess::wait_blocked() const {
  for (;;) {
    const auto stat = proc::read_stat(pid_);
    const auto call = proc::parse_syscall(proc::read_file(proc::proc_path(pid_, "syscall")).text);
    if (!stat || stat->state == 'Z') return;
    if (stat->state == 'S' && call && call->in_syscall) return;
    std::this_thread::yield();
  }
}

BlockedProcess::Outcome BlockedProcess::wait_outcome() {
  waitpid(pid_, nullptr, 0);
  is_reaped_ = true;
  return *outcome_;
}

}  // namespace forksight::test
