// Stacks and names of an image. Holds a symbolizer, and gives it the memory that it needs to walk stacks.
#pragma once

#include <cstdint>
#include <vector>

#include "image/image.hpp"
#include "model/model.hpp"
#include "symbols/symbols.hpp"

namespace forksight::image {

class Stacks {
 public:
  // `image` must outlive this object. Modules that the image gets later are not used.
  explicit Stacks(const Image& image);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Returns the stack of the thread. It is empty if the thread has ended, or if its registers are not known.
  model::Stack of(const Thread& thread);
  // Returns the stack that starts at return address `pc`, with the values that rsp and rbp had right behind the call.
  // The shim records these three values, for example when a thread takes a lock. `is_frozen`: functions may have
  // returned since then.
  model::Stack at(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp, bool is_frozen);

  symbols::Symbolizer& symbols() { return symbolizer_; }

 private:
  std::vector<std::byte> read_stack(std::uint64_t sp, std::size_t limit) const;

  const Image& image_;
  symbols::WordReader any_word_;
  symbols::Symbolizer symbolizer_;
};

}  // namespace forksight::image
