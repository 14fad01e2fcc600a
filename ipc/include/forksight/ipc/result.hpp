// A value, or an error. An error has a code, errno, the pid of the process that the error is about, and a text. The
// text names the object and the process, and says what to do.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace forksight::ipc {

enum class errc : std::uint8_t {
  // the deadline passed. The text names the processes that hold messages or buffers. With deadline::now(), the
  // text names no process
  timeout,
  // no producer is left, shutdown() was called, close_producer() was called on this handle, or the handle is empty
  closed,
  // no producer is left, and the last one died without closing; pid: its pid. If options::expected_producers is set,
  // the code also means that fewer producers have closed than were expected. Then pid is that of the producer that died
  // last, or of the dead creator
  producer_died,
  // there were consumers, but none is left. Or no consumer can come, because the creator has died; then pid is that of
  // the dead creator
  no_consumer,
  used_after_fork,  // the handle belongs to the parent process: call reattach_after_fork()
  role,             // the role of the handle (ipc/options.hpp) does not allow this call
  // other processes took this one for dead: the handle cannot be used any more, and nothing is damaged
  evicted,
  too_large,       // the message has more bytes than a buffer
  no_space,        // there is no memory, or no room in the file system of the segment
  cgroup_limit,    // the memory limit of the control group is too low for the segment
  fd_limit,        // too many descriptors: RLIMIT_NOFILE, or a limit of the system
  no_participant,  // the table of participants is full
  abi_mismatch,    // another version or another kind of build made the queue
  corrupt,         // a word of the segment has a value that no operation writes; the queue is poisoned
  untrusted,       // the file belongs to another user, has the wrong mode, is not sealed, ...
  not_found,       // there is no queue with that name, or no queue behind that descriptor
  bad_option,
  system,     // the kernel refused something else: see sys_errno
  cancelled,  // cancel() was called on this handle
  // messages that the feeder had accepted were lost (options::feeding is feed::thread). queue::delivered() says which
  undelivered,
};

// The enumerator's name, such as "timeout" or "producer_died". The text is static.
const char* name_of(errc code);

struct error {
  errc code = errc::system;
  int sys_errno = 0;      // 0: none
  std::uint32_t pid = 0;  // 0: the error is not about a process
  std::string text;
};

// E: the error type. A library on top of the queue may use an error type of its own.
template <class T, class E = error>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(E why) : state_(std::in_place_index<1>, std::move(why)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  // Aborts if there is no value.
  T& value() & { return checked(); }
  const T& value() const& {
    if (!has_value()) std::abort();
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return checked(); }
  const T& operator*() const { return value(); }
  // Aborts if there is a value.
  const E& error() const {
    if (has_value()) std::abort();
    return *std::get_if<1>(&state_);
  }

  // The value, or `other` if there is none.
  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value() ? std::move(*this).value() : static_cast<T>(std::forward<U>(other));
  }
  // Calls `next` with the value, and returns its result. Without a value, returns the error, and does not call `next`.
  // `next` returns a result with the same error type.
  template <class F>
  auto and_then(F&& next) & -> std::invoke_result_t<F, T&> {
    if (!has_value()) return error();
    return std::invoke(std::forward<F>(next), checked());
  }
  template <class F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return std::move(*std::get_if<1>(&state_));
    return std::invoke(std::forward<F>(next), std::move(checked()));
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
  // Calls `next`, and returns its result. After an error, returns the error, and does not call `next`.
  template <class F>
  auto and_then(F&& next) const -> std::invoke_result_t<F> {
    if (why_) return *why_;
    return std::invoke(std::forward<F>(next));
  }

 private:
  std::optional<E> why_;
};

}  // namespace forksight::ipc
