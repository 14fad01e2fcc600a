#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <new>

#include "failure.hpp"
#include "forksight/ipc.h"
#include "forksight/ipc/handover.hpp"

namespace ipc = forksight::ipc;

struct forksight_queue {
  ipc::queue held;
};
struct forksight_loan {
  ipc::loan held;
};
struct forksight_message {
  ipc::message held;
};

namespace {

static_assert(static_cast<int>(ipc::errc::timeout) + 1 == FORKSIGHT_QUEUE_TIMEOUT);
static_assert(static_cast<int>(ipc::errc::corrupt) + 1 == FORKSIGHT_QUEUE_CORRUPT);
static_assert(static_cast<int>(ipc::errc::system) + 1 == FORKSIGHT_QUEUE_SYSTEM);
static_assert(static_cast<int>(ipc::errc::undelivered) + 1 == FORKSIGHT_QUEUE_UNDELIVERED);

int tell(const ipc::error& why, forksight_queue_error* to) {
  const int code = static_cast<int>(why.code) + 1;
  if (to == nullptr) return code;
  *to = {};
  to->code = code;
  to->sys_errno = why.sys_errno;
  to->pid = why.pid;
  std::memcpy(to->text, why.text.data(), std::min(why.text.size(), sizeof to->text - 1));
  return code;
}

ipc::deadline until(std::int64_t timeout_ms) {
  if (timeout_ms == 0) return ipc::deadline::now();
  constexpr std::int64_t kYears = std::int64_t{1000} * 60 * 60 * 24 * 366 * 100;
  if (timeout_ms < 0 || timeout_ms > kYears) return ipc::deadline::never();
  return ipc::deadline::after(std::chrono::milliseconds(timeout_ms));
}

template <class Handle, class Value>
int give(ipc::result<Value> made, Handle** to, forksight_queue_error* error) {
  if (!made) return tell(made.error(), error);
  *to = new Handle{std::move(made).value()};
  return FORKSIGHT_QUEUE_OK;
}

int done(const ipc::result<void>& outcome, forksight_queue_error* error) {
  return outcome ? FORKSIGHT_QUEUE_OK : tell(outcome.error(), error);
}

ipc::error null_argument(const char* name) { return ipc::detail::failure(ipc::errc::bad_option, "%s is NULL", name); }

// An argument that must not be NULL.
struct Pointer {
  const char* name;
  const void* value;
};

// Calls body() and returns its result, if none of the pointers is NULL. No exception may reach C. The library itself
// throws only if memory is lacking.
template <class Body>
int guarded(forksight_queue_error* error, std::initializer_list<Pointer> pointers, Body body) {
  try {
    for (const Pointer& pointer : pointers) {
      if (pointer.value == nullptr) return tell(null_argument(pointer.name), error);
    }
    return body();
  } catch (const std::bad_alloc&) {
    return tell({ipc::errc::no_space, ENOMEM, 0, "queue: this process cannot allocate the memory that the call needs"},
                error);
  } catch (const std::exception& thrown) {
    return tell({ipc::errc::system, 0, 0, thrown.what()}, error);
  }
}

int tell_delivery(const ipc::queue& of, const ipc::result<ipc::delivery>& outcome, forksight_queue_delivery* told,
                  forksight_queue_error* error) {
  if (told != nullptr) {
    // The numbers are read after the call, so they include the messages that the call has sent or lost.
    const ipc::delivery now = of.delivered();
    *told = {now.accepted, now.sent, now.lost, now.pending, 0, 0};
    if (!now.lost_ranges.empty()) {
      told->first_lost = now.lost_ranges.front().first;
      told->first_lost_count = now.lost_ranges.front().count;
    }
  }
  return outcome ? FORKSIGHT_QUEUE_OK : tell(outcome.error(), error);
}

bool is_role(int role) { return role >= FORKSIGHT_QUEUE_ANY && role <= FORKSIGHT_QUEUE_CARETAKER; }
ipc::error bad_role(int role) {
  return ipc::detail::failure(ipc::errc::bad_option, "role is %d: it can be 0 to 3", role);
}

int give_fd(forksight_queue* queue, ipc::result<int> (ipc::queue::*make)(), int* fd, forksight_queue_error* error) {
  const auto made = (queue->held.*make)();
  if (!made) return tell(made.error(), error);
  *fd = made.value();
  return FORKSIGHT_QUEUE_OK;
}

ipc::result<ipc::options> options_of(const forksight_queue_options* options, const forksight_queue_expected* expected) {
  ipc::options wanted;
  if (expected != nullptr) {
    wanted.expected_producers = expected->producers;
    wanted.expected_consumers = expected->consumers;
    wanted.grace = std::chrono::milliseconds(expected->grace_ms);
  }
  if (options == nullptr) return wanted;
  if (options->full > 2) {
    return ipc::detail::failure(ipc::errc::bad_option, "full is %u: it can be 0 to 2", options->full);
  }
  if (options->slots != 0) wanted.slots = options->slots;
  if (options->buffers != 0) wanted.buffers = options->buffers;
  if (options->buffer_bytes != 0) wanted.buffer_bytes = options->buffer_bytes;
  wanted.backing = options->named != 0 ? ipc::strategy::named : ipc::strategy::memfd;
  wanted.feeding = options->thread != 0 ? ipc::feed::thread : ipc::feed::direct;
  wanted.after_death = options->redeliver != 0 ? ipc::on_death::redeliver : ipc::on_death::drop;
  wanted.when_full = static_cast<ipc::full>(options->full);
  if (options->max_redeliver != 0) wanted.max_redeliver = options->max_redeliver;
  if (options->max_participants != 0) wanted.max_participants = options->max_participants;
  if (options->spin_us != 0) wanted.spin_us = std::max(options->spin_us, 0);
  wanted.atfork_handlers = options->atfork_handlers != 0;
  wanted.unlink_at = options->unlink_at;
  return wanted;
}

}  // namespace

extern "C" {

int forksight_queue_create(const forksight_queue_options* options, forksight_queue** queue,
                           forksight_queue_error* error) {
  return forksight_queue_create_expecting(options, nullptr, queue, error);
}

int forksight_queue_create_expecting(const forksight_queue_options* options, const forksight_queue_expected* expected,
                                     forksight_queue** queue, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    auto wanted = options_of(options, expected);
    if (!wanted) return tell(wanted.error(), error);
    return give(ipc::queue::create(*wanted), queue, error);
  });
}

int forksight_queue_open_or_create(const char* name, const forksight_queue_options* options, int role,
                                   forksight_queue** queue, forksight_queue_error* error) {
  return forksight_queue_open_or_create_expecting(name, options, nullptr, role, queue, error);
}

int forksight_queue_open_or_create_expecting(const char* name, const forksight_queue_options* options,
                                             const forksight_queue_expected* expected, int role,
                                             forksight_queue** queue, forksight_queue_error* error) {
  return guarded(error, {{"name", name}, {"queue", queue}}, [&] {
    if (!is_role(role)) return tell(bad_role(role), error);
    auto wanted = options_of(options, expected);
    if (!wanted) return tell(wanted.error(), error);
    wanted->as = static_cast<ipc::role>(role);
    return give(ipc::queue::open_or_create(name, *wanted), queue, error);
  });
}

int forksight_queue_take_role(forksight_queue* queue, int role, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    if (!is_role(role)) return tell(bad_role(role), error);
    return done(queue->held.take_role(static_cast<ipc::role>(role)), error);
  });
}

int forksight_queue_attach(int fd, int role, forksight_queue** queue, forksight_queue_error* error) {
  return forksight_queue_attach_with_payload(fd, -1, role, queue, error);
}

int forksight_queue_attach_with_payload(int fd, int payload_fd, int role, forksight_queue** queue,
                                        forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    if (!is_role(role)) return tell(bad_role(role), error);
    return give(ipc::queue::attach(fd, static_cast<ipc::role>(role), payload_fd), queue, error);
  });
}

int forksight_queue_attach_named(const char* name, int role, forksight_queue** queue, forksight_queue_error* error) {
  return guarded(error, {{"name", name}, {"queue", queue}}, [&] {
    if (!is_role(role)) return tell(bad_role(role), error);
    return give(ipc::queue::attach(std::string(name), static_cast<ipc::role>(role)), queue, error);
  });
}

int forksight_queue_reattach_after_fork(const forksight_queue* parents, forksight_queue** queue,
                                        forksight_queue_error* error) {
  return guarded(error, {{"parents", parents}, {"queue", queue}},
                 [&] { return give(parents->held.reattach_after_fork(), queue, error); });
}

void forksight_queue_close(forksight_queue* queue) { delete queue; }

int forksight_queue_fd(const forksight_queue* queue) { return queue != nullptr ? queue->held.fd() : -1; }
int forksight_queue_payload_fd(const forksight_queue* queue) {
  return queue != nullptr ? queue->held.payload_fd() : -1;
}

size_t forksight_queue_name(const forksight_queue* queue, char* name, size_t size) {
  if (queue == nullptr) return 0;
  const std::string own = queue->held.name();
  if (name != nullptr && own.size() < size) std::memcpy(name, own.c_str(), own.size() + 1);
  return own.size();
}

uint64_t forksight_queue_buffer_bytes(const forksight_queue* queue) {
  return queue != nullptr ? queue->held.buffer_bytes() : 0;
}

int forksight_queue_acquire(forksight_queue* queue, int64_t timeout_ms, forksight_loan** loan,
                            forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"loan", loan}},
                 [&] { return give(queue->held.acquire(until(timeout_ms)), loan, error); });
}

void* forksight_loan_data(const forksight_loan* loan) { return loan != nullptr ? loan->held.data() : nullptr; }
uint64_t forksight_loan_capacity(const forksight_loan* loan) { return loan != nullptr ? loan->held.capacity() : 0; }

int forksight_queue_send(forksight_queue* queue, forksight_loan* loan, uint64_t bytes, int64_t timeout_ms,
                         forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"loan", loan}}, [&] {
    const int outcome = done(queue->held.send(std::move(loan->held), bytes, until(timeout_ms)), error);
    if (outcome == FORKSIGHT_QUEUE_OK) delete loan;
    return outcome;
  });
}

void forksight_loan_give_back(forksight_loan* loan) { delete loan; }

int forksight_queue_send_copy(forksight_queue* queue, const void* data, uint64_t bytes, int64_t timeout_ms,
                              forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    if (data == nullptr && bytes != 0) return tell(null_argument("data"), error);
    return done(queue->held.send_copy(data, bytes, until(timeout_ms)), error);
  });
}

int forksight_queue_receive(forksight_queue* queue, int64_t timeout_ms, forksight_message** message,
                            forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"message", message}},
                 [&] { return give(queue->held.receive(until(timeout_ms)), message, error); });
}

const void* forksight_message_data(const forksight_message* message) {
  return message != nullptr ? message->held.data() : nullptr;
}
uint64_t forksight_message_size(const forksight_message* message) {
  return message != nullptr ? message->held.size() : 0;
}
uint32_t forksight_message_producer(const forksight_message* message) {
  return message != nullptr ? message->held.producer() : 0;
}
uint32_t forksight_message_deliveries(const forksight_message* message) {
  return message != nullptr ? message->held.deliveries() : 0;
}
uint32_t forksight_message_number(const forksight_message* message) {
  return message != nullptr ? message->held.number() : 0;
}
void forksight_message_release(forksight_message* message) {
  // Without release(), the destructor would park a message of receive_parked() again.
  if (message != nullptr) (void)message->held.release();
  delete message;
}

int forksight_queue_message_fd(forksight_queue* queue, int* fd, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"fd", fd}},
                 [&] { return give_fd(queue, &ipc::queue::message_fd, fd, error); });
}
int forksight_queue_room_fd(forksight_queue* queue, int* fd, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"fd", fd}},
                 [&] { return give_fd(queue, &ipc::queue::room_fd, fd, error); });
}

int forksight_queue_receive_parked(forksight_queue* queue, forksight_message** message, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}, {"message", message}},
                 [&] { return give(queue->held.receive_parked(), message, error); });
}

int forksight_queue_requeue(forksight_queue* queue, size_t* count, forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    const auto requeued = queue->held.requeue();
    if (count != nullptr) *count = requeued ? requeued.value() : 0;
    return requeued ? FORKSIGHT_QUEUE_OK : tell(requeued.error(), error);
  });
}

int forksight_message_park(forksight_message* message, forksight_queue_error* error) {
  return guarded(error, {{"message", message}}, [&] {
    const int outcome = done(message->held.park(), error);
    if (outcome == FORKSIGHT_QUEUE_OK) delete message;
    return outcome;
  });
}

int forksight_message_requeue(forksight_message* message, forksight_queue_error* error) {
  return guarded(error, {{"message", message}}, [&] {
    const int outcome = done(message->held.requeue(), error);
    if (outcome == FORKSIGHT_QUEUE_OK) delete message;
    return outcome;
  });
}

int forksight_queue_flush(forksight_queue* queue, int64_t timeout_ms, forksight_queue_delivery* told,
                          forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}},
                 [&] { return tell_delivery(queue->held, queue->held.flush(until(timeout_ms)), told, error); });
}
int forksight_queue_close_producer(forksight_queue* queue, int64_t timeout_ms, forksight_queue_delivery* told,
                                   forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    return tell_delivery(queue->held, queue->held.close_producer(until(timeout_ms)), told, error);
  });
}
void forksight_queue_cancel(const forksight_queue* queue) {
  if (queue != nullptr) queue->held.cancel();
}
void forksight_queue_shutdown(forksight_queue* queue, int drain) {
  if (queue != nullptr) queue->held.shutdown(drain != 0);
}
size_t forksight_queue_recover(forksight_queue* queue) { return queue != nullptr ? queue->held.recover() : 0; }

int forksight_queue_gc(int dry_run, size_t* count, forksight_queue_error* error) {
  return guarded(error, {}, [&] {
    const auto report = ipc::gc(dry_run != 0);
    if (count != nullptr) *count = report ? report->removed.size() : 0;
    return report ? FORKSIGHT_QUEUE_OK : tell(report.error(), error);
  });
}

int forksight_queue_send_to(int socket, const forksight_queue* queue, int64_t timeout_ms,
                            forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}},
                 [&] { return done(ipc::send_queue(socket, queue->held, until(timeout_ms)), error); });
}

int forksight_queue_receive_from(int socket, int role, int64_t timeout_ms, forksight_queue** queue,
                                 forksight_queue_error* error) {
  return guarded(error, {{"queue", queue}}, [&] {
    if (!is_role(role)) return tell(bad_role(role), error);
    return give(ipc::receive_queue(socket, static_cast<ipc::role>(role), until(timeout_ms)), queue, error);
  });
}

}  // extern "C"
