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
  // `image` must outlive it; it uses the modules that the image has now.
  explicit Stacks(const Image& image);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // The stack of the thread. Empty if it has ended, or if its registers are not known.
  model::Stack of(const Thread& thread);
  // The stack from a return address and the registers right behind the call, if these were recorded, as for an
  // acquisition. `is_frozen`: functions have returned since then.
  model::Stack at(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp, bool is_frozen);

  symbols::Symbolizer& symbols() { return symbolizer_; }

 private:
  std::vector<std::byte> read_stack(std::uint64_t sp, std::size_t limit) const;

  const Image& image_;
  symbols::WordReader any_word_;
  symbols::Symbolizer symbolizer_;
};

}  // namespace forksight::image
