// Runs an actor until its next access to shared memory, and suspends it there. A suspended actor consists of bytes: the
// registers, and the part of the stack that is in use. It can be resumed any number of times. All actors use one stack
// at one address, so two actors in the same state consist of the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace forksight::ipc::test {

// What an actor has done, as the actor itself sees it.
struct actor_view {
  bool is_over = false, has_sent = false, has_taken = false, has_released = false, saw_corrupt = false;
  bool has_put_back = false;   // it parked or requeued the message that it had taken
  bool saw_end = false;        // it was told that no message can come any more
  std::uint32_t number = 0;    // the number of the message that it has taken
  std::uint64_t searched = 0;  // take_hint::searched of its handle
};

struct suspended {
  actor_view view;
  const void* next = nullptr;  // the word that it is about to access; null: the actor has ended
  std::string bytes;
};

// `actor`: the number of a user; kUsers: a recovering process.
suspended start_actor(std::uint32_t actor);
// Makes the access before which the actor was suspended, and goes on until the next access.
suspended resume_actor(const suspended& from);

}  // namespace forksight::ipc::test
