#include "files/descriptor.hpp"

#include <unistd.h>

#include <cerrno>

namespace forksight::files {

// The reason of a failure before stays in errno.
Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  const int error = errno;
  ::close(fd_);
  errno = error;
}

}  // namespace forksight::files
