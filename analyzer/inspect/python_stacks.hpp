// Reads the Python stacks of the processes from their memory, and inserts these stacks into the native stacks.
#pragma once

#include <map>
#include <vector>

#include "inspect/python/python_frames.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

class PythonStacks {
 public:
  // `locals` may be null if nobody asks for variables.
  PythonStacks(Scene& scene, std::vector<PythonLocals>* locals) : scene_(scene), locals_(locals) {}

  void read(std::size_t subject);
  // Inserts the Python lines into the stack of the wait, before the interpreter's own frames.
  void splice_lines(std::size_t subject, model::Wait& wait) const;
  // Inserts the Python lines into the stack of a call. Also notes for which lock of Python the call waits.
  void note(std::size_t subject, const image::Thread& thread, StuckCall& call) const;

 private:
  Scene& scene_;
  std::vector<PythonLocals>* locals_;
  void note_parked_place(std::size_t subject, StuckCall& call) const;

  std::map<std::size_t, PythonLayout> layouts_;               // by subject
  std::map<std::size_t, std::vector<PythonThread>> threads_;  // by subject
};

}  // namespace forksight::inspect
