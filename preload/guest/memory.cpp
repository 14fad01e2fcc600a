#include "guest/memory.hpp"

#include <errno.h>

#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::size_t kPage = 4096;

// Writes the memory to a pipe, and reads it back from the pipe. In write(2) the kernel reads the memory, so an unmapped
// page causes an error instead of a fault.
std::size_t read_through_pipe(const std::byte* from, std::byte* to, std::size_t bytes) {
  int ends[2];
  if (sys::call(SYS_pipe2, sys::word(ends), O_CLOEXEC | O_NONBLOCK) != 0) return 0;
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t to_page_end = kPage - reinterpret_cast<std::uintptr_t>(from + done) % kPage;
    const std::size_t wanted = bytes - done < to_page_end ? bytes - done : to_page_end;
    const long put = sys::call(SYS_write, ends[1], sys::word(from + done), static_cast<long>(wanted));
    if (put <= 0) break;
    // Nothing may stay in the pipe, because the next bytes would come after it.
    const sys::Text got = sys::read_all(ends[0], to + done, static_cast<std::size_t>(put));
    done += got.bytes;
    if (got.bytes != static_cast<std::size_t>(put)) break;
  }
  sys::close(ends[0]);
  sys::close(ends[1]);
  return done;
}

}  // namespace

// Within an iovec element the kernel copies page by page, and stops at the first unmapped page. So one element for each
// side is enough. The kernel may also stop earlier. So this function repeats the call for the rest until the kernel
// copies nothing more.
std::size_t read_memory(const void* from, void* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    iovec local{static_cast<std::byte*>(to) + done, bytes - done};
    iovec remote{static_cast<std::byte*>(const_cast<void*>(from)) + done, bytes - done};
    const long got = sys::call(SYS_process_vm_readv, sys::getpid(), sys::word(&local), 1, sys::word(&remote), 1, 0);
    if (got < 0 && got != -EFAULT && done == 0)
      return read_through_pipe(static_cast<const std::byte*>(from), static_cast<std::byte*>(to), bytes);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t read_pieces(iovec* local, iovec* remote, std::uint32_t count) {
  const long got = sys::call(SYS_process_vm_readv, sys::getpid(), sys::word(local), count, sys::word(remote), count, 0);
  if (got == -EFAULT) return 0;
  std::size_t bytes = got < 0 ? 0 : static_cast<std::size_t>(got);
  std::size_t before = 0;  // bytes of the pieces before this one
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t size = local[i].iov_len;
    const std::size_t done = bytes - before < size ? bytes - before : size;
    if (done < size) {
      const std::size_t rest = read_memory(static_cast<std::byte*>(remote[i].iov_base) + done,
                                           static_cast<std::byte*>(local[i].iov_base) + done, size - done);
      bytes += rest;
      if (rest != size - done) break;
    }
    before += size;
  }
  return bytes;
}

}  // namespace forksight
