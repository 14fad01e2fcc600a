#include "forksight/ipc/queue.hpp"

#include <sys/mman.h>

#include <cstring>

#include "core.hpp"
#include "failure.hpp"
#include "feeder.hpp"

namespace forksight::ipc {
namespace {

error not_open() {
  return detail::failure(errc::closed, "queue: this handle is empty: create() or attach() returns one that is not");
}

error no_message() { return detail::failure(errc::bad_option, "queue: the message is empty, or was released"); }

// True if the handle no longer has the message after this result. If the handle was evicted, others own the buffer, and
// may write into it. A corrupt queue gives no message to anybody any more.
bool has_lost_message(const result<void>& done) {
  return done || done.error().code == errc::evicted || done.error().code == errc::corrupt;
}

}  // namespace

loan::loan(loan&& other) noexcept { *this = std::move(other); }
loan& loan::operator=(loan&& other) noexcept {
  if (this == &other) return *this;
  reset();
  core_ = std::move(other.core_);
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  buffer_ = other.buffer_;
  generation_ = other.generation_;
  return *this;
}
loan::~loan() { reset(); }
void loan::reset() {
  if (core_) core_->give_back(*this);
  core_.reset();
  data_ = nullptr;
  capacity_ = 0;
}

message::message(message&& other) noexcept { *this = std::move(other); }
message& message::operator=(message&& other) noexcept {
  if (this == &other) return *this;
  end();
  core_ = std::move(other.core_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  buffer_ = other.buffer_;
  generation_ = other.generation_;
  position_ = other.position_;
  producer_ = other.producer_;
  deliveries_ = other.deliveries_;
  is_withdrawn_ = other.is_withdrawn_;
  return *this;
}
message::~message() { end(); }
// A message of receive_parked() that was not released is parked again, so that it is not lost when the object is
// destroyed.
void message::end() {
  if (!core_) return;
  if (is_withdrawn_) {
    (void)core_->park(*this);
    forget();
  } else {
    (void)release();
  }
}
void message::forget() {
  core_.reset();
  data_ = nullptr;
  size_ = 0;
}
result<void> message::release() {
  if (!core_) return {};
  auto done = core_->release(*this);
  forget();
  return done;
}
result<void> message::park() {
  if (!core_) return no_message();
  auto done = core_->park(*this);
  if (has_lost_message(done)) forget();
  return done;
}
result<void> message::requeue() {
  if (!core_) return no_message();
  if (!is_withdrawn_) {
    return detail::failure(errc::bad_option, "queue: requeue() takes only a message that receive_parked() returned");
  }
  auto done = core_->requeue(*this);
  if (has_lost_message(done)) forget();
  return done;
}

error detail::not_whole(std::size_t message_bytes, std::size_t element_bytes) {
  return failure(errc::bad_option, "queue: a message of %zu bytes is not a whole number of elements of %zu bytes",
                 message_bytes, element_bytes);
}

queue::~queue() = default;

void detail::at_each_look(const queue& of, std::function<void()> look) { of.core_->at_each_look(std::move(look)); }

result<queue> queue::open(result<detail::segment> memory, role as) {
  if (!memory) return memory.error();
  auto made = detail::core::open(std::move(memory).value(), as);
  if (!made) return made.error();
  queue handle;
  handle.core_ = std::move(made).value();
  const detail::geometry& shape = handle.core_->memory().shape();
  if (shape.feed == static_cast<std::uint8_t>(feed::thread) && (as == role::any || as == role::producer)) {
    handle.feeder_ = std::make_shared<detail::feeder>(handle.core_, shape.atfork_handlers != 0);
  }
  return handle;
}

result<queue> queue::create(const options& wanted) {
  auto memory = detail::segment::create(wanted);
  const std::string name = memory ? memory->name() : std::string();
  auto made = open(std::move(memory), wanted.as);
  // If the queue cannot be opened, its name must not stay behind.
  if (!made && !name.empty()) shm_unlink(name.c_str());
  return made;
}

result<queue> queue::attach(int fd, role as, int payload_fd) {
  // The payload's descriptor is checked before the first copy is made. Otherwise, if that descriptor is not open, the
  // copy could get its number.
  if (payload_fd >= 0) {
    if (auto good = detail::segment::check_descriptor(payload_fd); !good) return good.error();
  }
  auto own = detail::segment::copy_of(fd);
  if (!own) return own.error();
  detail::descriptor payload;
  if (payload_fd >= 0) {
    auto own_payload = detail::segment::copy_of(payload_fd);
    if (!own_payload) return own_payload.error();
    payload = std::move(own_payload).value();
  }
  return open(detail::segment::open(std::move(own).value(), std::move(payload)), as);
}

result<queue> queue::attach(const std::string& name, role as) { return open(detail::segment::open_named(name), as); }

int queue::fd() const { return core_ ? core_->memory().fd() : -1; }
int queue::payload_fd() const { return core_ ? core_->memory().payload_fd() : -1; }
std::string queue::name() const { return core_ ? core_->memory().name() : std::string(); }
std::size_t queue::buffer_bytes() const { return core_ ? core_->memory().shape().buffer_bytes : 0; }

result<loan> queue::acquire(deadline until) {
  if (!core_) return not_open();
  return core_->acquire(core_, until);
}

result<void> queue::send(loan&& from, std::size_t bytes, deadline until) {
  if (!core_) return not_open();
  return core_->send(from, bytes, until);
}

result<message> queue::receive(deadline until) {
  if (!core_) return not_open();
  return core_->receive(core_, until);
}

result<int> queue::message_fd() {
  if (!core_) return not_open();
  return core_->watch(detail::wait_kind::message);
}

result<int> queue::room_fd() {
  if (!core_) return not_open();
  return core_->watch(detail::wait_kind::buffer);
}

result<message> queue::receive_parked() {
  if (!core_) return not_open();
  return core_->receive_parked(core_);
}

result<std::size_t> queue::requeue() {
  if (!core_) return not_open();
  return core_->requeue_all();
}

result<void> queue::send_copy(const void* data, std::size_t bytes, deadline until) {
  if (!core_) return not_open();
  if (bytes > buffer_bytes()) {
    return detail::failure(errc::too_large,
                           "queue: the message has %zu bytes, but a buffer has only %zu: send smaller messages, or "
                           "create the queue with a larger buffer_bytes",
                           bytes, buffer_bytes());
  }
  if (feeder_) return feeder_->put(data, bytes);
  auto got = core_->acquire(core_, until);
  if (!got) return got.error();
  if (bytes != 0) std::memcpy(got->data(), data, bytes);
  return core_->send(*got, bytes, until);
}

result<delivery> queue::flush(deadline until) {
  if (!core_) return not_open();
  if (feeder_) return feeder_->flush(until);
  if (auto usable = core_->check_usable(); !usable) return usable.error();
  return delivery{};
}
result<delivery> queue::close_producer(deadline until) {
  if (!core_) return not_open();
  result<delivery> told = delivery{};
  if (feeder_) told = feeder_->close(until);
  // After a timeout, the feeder goes on, so the handle stays a producer.
  if (!told && told.error().code == errc::timeout) return told;
  core_->close_producer();
  return told;
}
delivery queue::delivered() const { return feeder_ ? feeder_->delivered() : delivery{}; }
void queue::cancel() const noexcept {
  if (core_) core_->cancel();
}
void queue::shutdown(bool drain) {
  if (core_) core_->shutdown(drain);
}
result<void> queue::take_role(role as) {
  if (!core_) return not_open();
  return core_->take_role(as);
}
std::size_t queue::recover() { return core_ ? core_->recover() : 0; }

snapshot queue::inspect() const {
  if (!core_) return {};
  const detail::segment& memory = core_->memory();
  return detail::take_snapshot(memory.view(), memory.shape(), memory.name());
}

result<queue> queue::reattach_after_fork() const {
  if (!core_) return not_open();
  return attach(core_->memory().fd(), core_->attached_as(), core_->memory().payload_fd());
}

}  // namespace forksight::ipc
