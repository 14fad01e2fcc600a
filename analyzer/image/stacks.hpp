// Stacks and names of an image: one symbolizer, and the memory that its walks need.
#pragma once

#include <cstdint>
#include <vector>

#include "image/image.hpp"
#include "model/model.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

class Stacks {
 public:
  // The image must live as long; its modules are those that it has now.
  explicit Stacks(const Image& image);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Where the thread stands. Empty of one that has ended, or whose registers nobody knows.
  model::Stack of(const Thread& thread);
  // From a return address, and the registers right behind the call: for those that were kept somewhere, as of an
  // acquisition. `is_frozen`: functions have returned since.
  model::Stack at(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp, bool is_frozen);

  symbols::Symbolizer& symbols() { return symbolizer_; }

 private:
  std::vector<std::byte> read_stack(std::uint64_t sp, std::size_t limit) const;

  const Image& image_;
  symbols::WordReader any_word_;
  symbols::Symbolizer symbolizer_;
};

}  // namespace forksight::image
