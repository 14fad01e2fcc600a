// A value, or why there is none. What goes wrong is told with the code, errno, a sentence that names the object, the
// process and what to do, and the process that it is about.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace forksight::ipc {

enum class errc : std::uint8_t {
  timeout,          // the deadline passed; the text says who holds what
  closed,           // no producer is left, or shutdown() was called; also: this handle has closed itself
  producer_died,    // no producer is left, and the last one did not leave but died; pid: of it
  no_consumer,      // there were consumers, and none is left
  used_after_fork,  // the handle is the parent's: reattach_after_fork()
  role,             // attached for the other role, or as a caretaker
  evicted,          // others took this process for dead: the handle is of no more use, nothing is damaged
  too_large,        // more bytes than a buffer has
  no_space,         // no memory, or no room in the file system of the segment
  cgroup_limit,     // the memory limit of the control group is too low for the segment
  fd_limit,         // RLIMIT_NOFILE
  no_participant,   // the table of participants is full
  abi_mismatch,     // made by another version or another kind of build
  corrupt,          // a word of the segment holds what no operation writes; the queue is poisoned
  untrusted,        // another user's, of the wrong mode, not sealed, ...
  not_found,        // no queue of that name or behind that descriptor
  bad_option,
  system,       // whatever else the kernel refused: errno says
  cancelled,    // cancel() was called on this handle
  undelivered,  // feed::thread: accepted messages did not get into the queue; delivered() says which
};

// "timeout", "producer_died", ...: static.
const char* name_of(errc code);

struct error {
  errc code = errc::system;
  int sys_errno = 0;      // 0: none
  std::uint32_t pid = 0;  // 0: about nobody
  std::string text;
};

// E: of what a library on top of the queue says.
template <class T, class E = error>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(E why) : state_(std::in_place_index<1>, std::move(why)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  // Aborts if there is none.
  T& value() & { return checked(); }
  const T& value() const& {
    if (!has_value()) std::abort();
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  T& operator*() { return checked(); }
  // Aborts if there is a value.
  const E& error() const {
    if (has_value()) std::abort();
    return *std::get_if<1>(&state_);
  }

 private:
  T& checked() {
    if (!has_value()) std::abort();
    return *std::get_if<0>(&state_);
  }
  std::variant<T, E> state_;
};

template <class E>
class [[nodiscard]] result<void, E> {
 public:
  result() = default;
  result(E why) : why_(std::move(why)) {}
  explicit operator bool() const { return !why_.has_value(); }
  bool has_value() const { return !why_.has_value(); }
  const E& error() const {
    if (!why_) std::abort();
    return *why_;
  }

 private:
  std::optional<E> why_;
};

}  // namespace forksight::ipc
