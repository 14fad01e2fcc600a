// Python's own stacks of the processes, read out of their memory and put into the native ones.
#pragma once

#include <map>
#include <vector>

#include "inspect/python/python_frames.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

class PythonStacks {
 public:
  // `locals` may be null: nobody asks for them.
  PythonStacks(Scene& scene, std::vector<PythonLocals>* locals) : scene_(scene), locals_(locals) {}

  void read(std::size_t subject);
  // Lines of Python where the interpreter's own frames are.
  void splice_lines(std::size_t subject, model::Wait& wait) const;
  // The same of a call, and which lock of Python it is for.
  void note(std::size_t subject, const image::Thread& thread, StuckCall& call) const;

 private:
  Scene& scene_;
  std::vector<PythonLocals>* locals_;
  void note_park(std::size_t subject, StuckCall& call) const;

  std::map<std::size_t, PythonLayout> layouts_;               // by subject
  std::map<std::size_t, std::vector<PythonThread>> threads_;  // by subject
};

}  // namespace forksight::inspect
