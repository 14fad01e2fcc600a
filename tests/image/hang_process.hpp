// The program hang.c, running, with all of its threads where they stay.
#pragma once

#include <sys/types.h>

#include <string>

#include "image/image.hpp"
#include "model/model.hpp"

namespace forksight::test {

class HangProcess {
 public:
  explicit HangProcess(const std::string& program);
  ~HangProcess();  // kills and reaps it
  HangProcess(const HangProcess&) = delete;
  HangProcess& operator=(const HangProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// The thread that calls itself `name`.
const image::Thread& thread_named(const image::Image& image, const std::string& name);

// "read read_nothing read_thread start_thread clone3", without inlined frames; ends with "..." if the stack is cut.
std::string names_of(const model::Stack& stack);

}  // namespace forksight::test
