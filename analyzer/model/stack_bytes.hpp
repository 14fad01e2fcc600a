// Estimates the memory that names and stacks take. Files of strangers may lead to very many of them.
#pragma once

#include <cstddef>
#include <string>

#include "model/stack.hpp"

namespace forksight::model {

// Returns the bytes that the text takes outside of its std::string.
inline std::size_t bytes_of(const std::string& text) {
  constexpr std::size_t kInside = 15;  // characters that a std::string of libstdc++ holds without an allocation
  constexpr std::size_t kBlock = 16;   // what malloc() adds to a block, about
  return text.capacity() > kInside ? text.capacity() + kBlock : 0;
}

// Returns the bytes that the frames take outside of the Stack.
inline std::size_t bytes_of(const Stack& stack) {
  std::size_t bytes = stack.frames.capacity() * sizeof(Frame);
  for (const Frame& frame : stack.frames)
    bytes += bytes_of(frame.function) + bytes_of(frame.file) + bytes_of(frame.module);
  return bytes;
}

}  // namespace forksight::model
