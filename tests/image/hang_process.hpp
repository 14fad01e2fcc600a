// A process that runs the program hang.c, and whose threads have all reached the places in which they hang.
#pragma once

#include <sys/types.h>

#include <string>

#include "image/image.hpp"
#include "model/model.hpp"

namespace forksight::test {

class HangProcess {
 public:
  explicit HangProcess(const std::string& program);
  ~HangProcess();  // kills and reaps the process
  HangProcess(const HangProcess&) = delete;
  HangProcess& operator=(const HangProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// Returns the thread whose name is `name`. Throws if there is none.
const image::Thread& thread_named(const image::Image& image, const std::string& name);

// Returns the functions of a stack without inlined ones, for example "read read_nothing read_thread start_thread
// clone3". The text ends with "..." if the stack is cut.
std::string names_of(const model::Stack& stack);

}  // namespace forksight::test
