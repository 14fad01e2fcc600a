// Owns a file descriptor, and closes it in its destructor.
#pragma once

#include <unistd.h>

#include <utility>

#include "cancellation.hpp"

namespace forksight::ipc::detail {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ < 0) return;
    const uncancellable guard;  // close() is a cancellation point
    close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace forksight::ipc::detail
