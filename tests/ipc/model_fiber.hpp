// An actor that runs until its next access to shared memory, is put by there, and goes on from there whenever it is
// wanted again: the registers and the part of the stack that is in use, as bytes. All actors use one stack, at one
// address, so that what is equal is equal bytes.
#pragma once

#include <cstdint>
#include <string>

namespace forksight::ipc::test {

// What an actor has done, of its own view.
struct actor_view {
  bool is_over = false, has_sent = false, has_taken = false, has_released = false, saw_corrupt = false;
  bool has_put_back = false;   // what it has taken: parked or requeued
  bool saw_end = false;        // nothing can come any more, it was told
  std::uint32_t number = 0;    // of what it has taken
  std::uint64_t searched = 0;  // of its take_hint
};

struct suspended {
  actor_view view;
  const void* next = nullptr;  // the word that it is about to touch; none: it is over
  std::string bytes;
};

// `actor`: a user, or kUsers: one who recovers.
suspended start_actor(std::uint32_t actor);
// Does the one access that it stands before, and all up to the next.
suspended resume_actor(const suspended& from);

}  // namespace forksight::ipc::test
