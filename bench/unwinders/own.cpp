#include "symbols/frozen.hpp"
#include "symbols/thread_walk.hpp"
#include "walkers.hpp"

namespace forksight::bench {
namespace {

class Own final : public Walker {
 public:
  explicit Own(const std::vector<symbols::Module>& modules) : space_(modules) {}

  Answer walk(const Subject& subject) override {
    symbols::Walk walk;
    if (subject.is_frozen) {
      walk = symbols::walk_frozen(space_, subject.registers, subject.stack, subject.is_cut);
    } else if (subject.is_exact) {
      walk = symbols::walk_thread(space_, subject.registers, subject.stack);
    } else {
      walk = symbols::Unwinder(space_).walk(subject.registers, subject.stack, false);
    }
    Answer answer{{}, walk.end};
    for (const symbols::RawFrame& frame : walk.frames) answer.pcs.push_back(frame.pc);
    return answer;
  }

 private:
  symbols::AddressSpace space_;
};

}  // namespace

std::unique_ptr<Walker> make_own(const std::vector<symbols::Module>& modules) { return std::make_unique<Own>(modules); }

}  // namespace forksight::bench
