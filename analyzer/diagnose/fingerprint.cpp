#include "diagnose/fingerprint.hpp"

#include <fmt/core.h>

#include "diagnose/words.hpp"

namespace forksight {

namespace {

class Fnv1a {
 public:
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(std::uint8_t{0});
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint8_t byte) {
    value_ ^= byte;
    value_ *= 0x100000001b3;
  }
  std::uint64_t value_ = 0xcbf29ce484222325;
};

void add_stack(Fnv1a& hash, const model::Stack& stack) {
  for (const model::Frame& frame : stack.frames)
    hash.add(frame.function.empty() ? words::base_name(frame.module) : frame.function);
  hash.add("|");
}

// "cache_mu (mutex)" but not "the mutex at 0x55d0c0", nor a count of threads.
std::string_view stable_name(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kLock && !culprit.library.empty() ? std::string_view(culprit.name)
                                                                        : std::string_view();
}

}  // namespace

std::string fingerprint(const Finding& finding) {
  Fnv1a hash;
  hash.add(finding.rule);
  hash.add(words::base_name(finding.culprit.library));
  hash.add(stable_name(finding.culprit));
  add_stack(hash, finding.culprit.stack);
  add_stack(hash, finding.stack);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace forksight
