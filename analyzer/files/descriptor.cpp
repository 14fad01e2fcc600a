#include "files/descriptor.hpp"

#include <unistd.h>

#include <cerrno>

namespace forksight::files {

// Keeps errno, so that the reason of an earlier failure is not lost.
Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  const int error = errno;
  ::close(fd_);
  errno = error;
}

}  // namespace forksight::files
