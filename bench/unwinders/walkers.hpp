// Three unwinders behind one interface, so that each can walk the same stack: forksight's own code, libunwind's remote
// interface, and libdw's unwinder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "symbols/symbols.hpp"
#include "symbols/unwinder.hpp"

namespace forksight::bench {

struct Subject {
  std::string name;
  symbols::Registers registers{};
  symbols::StackBytes stack;
  bool is_exact = false;   // true: the pc is the next instruction of the thread; false: the pc is a return address
  bool is_frozen = false;  // inner frames may have been overwritten since the stack was recorded
  bool is_cut = false;     // the recorded bytes do not contain the whole stack
};

struct Answer {
  std::vector<std::uint64_t> pcs;  // innermost first
  symbols::WalkEnd end = symbols::WalkEnd::kLost;
};

// An unwinder for one process image. Only one thread may use it at a time.
class Walker {
 public:
  virtual ~Walker() = default;
  virtual Answer walk(const Subject& subject) = 0;
};

std::unique_ptr<Walker> make_own(const std::vector<symbols::Module>& modules);
std::unique_ptr<Walker> make_libunwind(const std::vector<symbols::Module>& modules);
std::unique_ptr<Walker> make_libdw(const std::vector<symbols::Module>& modules);

}  // namespace forksight::bench
