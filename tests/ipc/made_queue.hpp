// Makes queues for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "forksight/ipc/queue.hpp"

namespace forksight::ipc::test {

// Returns the options of a queue with `count` slots and as many buffers, of 64 bytes each.
inline options small(std::uint32_t count) {
  options wanted;
  wanted.slots = wanted.buffers = count;
  wanted.buffer_bytes = 64;
  return wanted;
}

inline queue make(const options& wanted) {
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

}  // namespace forksight::ipc::test
