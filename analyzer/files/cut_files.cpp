#include "files/cut_files.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace forksight::files {
namespace {

std::atomic<bool> g_was_cut = false;
std::atomic<std::uintptr_t> g_page_bytes = 4096;

// This handler is async-signal-safe: mmap is one system call.
void replace_page(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const std::uintptr_t size = g_page_bytes;
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(size - 1);
  // BUS_ADRERR: the page is after the end of the mapped file. Anything else is a fault of this program.
  const bool is_cut =
      info->si_code == BUS_ADRERR && ::mmap(reinterpret_cast<void*>(page), size, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  if (is_cut) {
    g_was_cut = true;
  } else {
    // After this handler, the processor tries the instruction again. Then SIGBUS ends the process, as without this
    // handler.
    ::signal(signal, SIG_DFL);
  }
  errno = error;
}

}  // namespace

void read_lost_pages_as_zeros() {
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  g_page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = replace_page;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

bool has_read_lost_page() { return g_was_cut; }

}  // namespace forksight::files
