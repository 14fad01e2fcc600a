// Finds out whether more producers or consumers may come. If a call finds no member of the other role, the status of
// that role decides whether the call reports the end of the queue or goes on waiting.
//
// Each entry counts how many of its owners have ended as a producer or as a consumer (role_word). If the options of the
// queue say how many are expected, calls wait until this number has ended. After the last member has ended, a call also
// waits for the grace time, in which a supervisor may start another member. The beginning of the grace time is not
// stored in the segment. Each handle measures the time from its own first look that found no member. So the time does
// not depend on the clock of another process, and no other process can shorten or extend it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "layout.hpp"
#include "members.hpp"

namespace forksight::ipc::detail {

struct role_status {
  enum class kind : std::uint8_t {
    open,         // a member is attached, or more are expected, or none has ever attached
    ended,        // no member is attached, and none is expected any more
    creator_died  // no member is attached. More were expected, but the creator, which would have started them, has died
  };
  kind what = kind::open;
  std::uint64_t look_again_ns =
      ~std::uint64_t{0};  // with `open`: the time of CLOCK_MONOTONIC at which the grace time ends, if it has begun
  ended_members ended;
  std::uint32_t expected = 0;
};

class role_tracker {
 public:
  // The status of that role. `now_ns`: the time of CLOCK_MONOTONIC; used only if the queue has a grace time. Any
  // thread of the handle may call this.
  role_status of(std::uint32_t role, members& who, const ring& view, const geometry& shape, std::uint64_t now_ns);

 private:
  // Records when this handle first found no member of a role, and a number that changes when a member comes or ends. If
  // two threads store at once, the later time may stay. Then the grace time gets longer, never shorter.
  struct absence {
    std::atomic<std::uint64_t> version{0}, since_ns{0};
  };
  absence absent_[kCountedRoles];
};

// Returns a text such as "1 of 3 expected producers has come"; empty: the expected number is not known. `there`: how
// many are attached now.
std::string describe_expected(std::uint32_t role, std::uint32_t expected, const ended_members& ended,
                              std::uint32_t there);

}  // namespace forksight::ipc::detail
