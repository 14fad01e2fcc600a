// A process that reads the command line of another process, as ps does, and does not finish. Until the read ends, the
// kernel keeps the memory of the other process, even if the other process has died and its parent has waited for it.
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "child.hpp"

namespace forksight::ipc::test {

class memory_reader {
 public:
  // Returns after the read has begun, or has failed.
  explicit memory_reader(pid_t of) : process_([this, of] { return read_without_end(of); }) {
    close(begun_.ends[1]);
    char byte = 0;
    reads_ = read(begun_.ends[0], &byte, 1) == 1;
    close(begun_.ends[0]);
  }
  // False: the kernel does not let this process stop a read. That takes CAP_SYS_PTRACE, or Linux must be told to
  // allow it to every process (vm.unprivileged_userfaultfd).
  bool reads() const { return reads_; }
  // Ends the read. When this function returns, the kernel no longer keeps the memory for the reader.
  void end() { process_.kill_and_wait(); }

 private:
  struct pipe_ends {
    pipe_ends() {
      if (pipe(ends) != 0) std::abort();
    }
    int ends[2];
  };

  // The bytes that are read go to a page that is not there. The kernel waits inside of the read until somebody provides
  // the page. Nobody does, so only a signal that kills this process ends the read.
  int read_without_end(pid_t of) const {
    constexpr std::size_t kPageBytes = 4096;
    const int faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{UFFD_API, 0, 0};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) return 1;
    void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register missing{};
    missing.range = {reinterpret_cast<std::uintptr_t>(page), kPageBytes};
    missing.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (page == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &missing) != 0) return 1;
    const int line = open(("/proc/" + std::to_string(of) + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    if (line < 0) return 1;
    std::thread tells([&] {
      uffd_msg fault{};
      if (::read(faults, &fault, sizeof fault) == sizeof fault) (void)!write(begun_.ends[1], "", 1);
    });
    (void)!::read(line, page, 1);
    _exit(1);
  }

  const pipe_ends begun_;
  bool reads_ = false;
  child process_;
};

}  // namespace forksight::ipc::test
