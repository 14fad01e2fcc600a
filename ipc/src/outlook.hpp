// Tells whether more producers or consumers are to come. This decides what a call may say when it finds no member of
// the other role: that the queue has ended, or nothing yet.
//
// Each place counts the producers and consumers that have ended there (role_word). If the creator of the queue has said
// how many are expected, the queue waits for so many. After the last member has ended, a call waits for the grace time:
// a supervisor may start another one. The grace time has no word in the segment. Each handle counts it from the look at
// which it first found nobody. So no clock of another process matters, and nobody can end the time too early or extend
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "layout.hpp"
#include "members.hpp"

namespace forksight::ipc::detail {

struct outlook {
  enum class kind : std::uint8_t {
    open,         // a member is there, or more are to come, or none has ever come
    ended,        // nobody is there, and nobody is expected any more
    creator_died  // nobody is there. More were expected, but the creator, who would have started them, has died
  };
  kind what = kind::open;
  std::uint64_t look_again_ns =
      ~std::uint64_t{0};  // open: when the grace time ends, on CLOCK_MONOTONIC, if it has begun
  ended_members ended;
  std::uint32_t expected = 0;
};

class outlooks {
 public:
  // What is to come in that role. `now_ns`: of CLOCK_MONOTONIC; used only if there is a grace time. Any thread of the
  // handle may call this.
  outlook of(std::uint32_t role, members& who, const ring& view, const geometry& shape, std::uint64_t now_ns);

 private:
  // When this handle first found nobody, and what had come and ended by then. If two threads store at once, the later
  // time may stay: then the grace time gets longer, never shorter.
  struct absence {
    std::atomic<std::uint64_t> version{0}, since_ns{0};
  };
  absence absent_[kCountedRoles];
};

// "1 of 3 expected producers has come"; empty: the number is not known. `there`: how many are there now.
std::string describe_expected(std::uint32_t role, std::uint32_t expected, const ended_members& ended,
                              std::uint32_t there);

}  // namespace forksight::ipc::detail
