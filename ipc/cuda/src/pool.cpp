#include "pool.hpp"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

// The content of a message.
struct pool_message {
  std::uint64_t bytes;
  std::uint32_t number;  // the number of this message among the messages of its buffer
  std::uint32_t reserved;
};

error used_after_fork() {
  return failure(
      errc::used_after_fork,
      "CUDA: the pool belongs to the parent process. That process uses CUDA, so its forked children cannot use it: "
      "start the child by exec, and send it the pool");
}

}  // namespace

error pool::failed(int answer, const char* function) const {
  return failed_call(memory_->api(), answer, function, "CUDA: the pool of process %u", about().pid);
}

error pool::producer_died(const char* what) const {
  error why = failure(errc::producer_died, "CUDA: process %u, which made this pool, has died: %s", about().pid, what);
  why.pid = about().pid;
  return why;
}

result<void> pool::check_usable() const {
  if (!mark_.is_ours()) return used_after_fork();
  if (!memory_) return from_queue({ipc::errc::closed, 0, 0, "CUDA: this pool was closed"});
  return {};
}

result<void> pool::check_stream(stream on) const {
  const driver& api = memory_->api();
  int state = 0;
  const int answer = api.stream_capture(on, &state);
  if (answer == kCaptureImplicit || (answer == kSuccess && state != 0)) {
    return failure(
        errc::capturing,
        "CUDA: the stream is being captured into a graph, and each launch of the graph would wait for this one "
        "message: make this call before or after the capture");
  }
  if (answer != kSuccess) return failed(answer, "cuStreamIsCapturing");
  cu_context its = nullptr;
  if (const int asked = api.stream_context(on, &its); asked != kSuccess) return failed(asked, "cuStreamGetCtx");
  if (its == memory_->context()) return {};
  return failure(errc::bad_option,
                 "CUDA: the stream does not belong to the primary context of device %d. The pool's memory is in that "
                 "context: use a stream of it, and copy from there to another device (cuMemcpyPeerAsync)",
                 memory_->device());
}

result<std::shared_ptr<pool>> pool::create(const pool_options& wanted) {
  if (wanted.kind == memory::mempool) {
    return failure(errc::unsupported, "CUDA: memory::mempool is not implemented: use memory::vmm_fd instead");
  }
  if (wanted.bytes == 0 || wanted.bytes > std::uint64_t{1} << 46 || wanted.buffers == 0 ||
      wanted.buffers > kMaxBuffers) {
    return failure(errc::bad_option,
                   "CUDA: a pool cannot have %u buffers of %zu bytes: it can have 1 to %u buffers of 1 to 2^46 bytes",
                   wanted.buffers, wanted.bytes, kMaxBuffers);
  }
  if (wanted.existing != 0 && wanted.kind != memory::legacy) {
    return failure(errc::bad_option,
                   "CUDA: pool_options::existing is for memory::legacy only: set `kind` to memory::legacy");
  }
  auto api = driver::load();
  if (!api) return api.error();
  if (auto refused = refuse_platform(surroundings::here())) return *refused;
  if (auto refused = refuse_uninitialised(**api)) return *refused;

  ipc::options shape;
  shape.slots = wanted.buffers;
  shape.buffers = wanted.buffers;
  shape.buffer_bytes = sizeof(pool_message);
  shape.after_death = wanted.after_death;
  shape.when_full = wanted.when_full;
  shape.max_participants = wanted.max_participants;
  shape.as = ipc::role::producer;
  shape.holds_references = true;
  if (shape.slots < 2) shape.slots = 2;
  const std::shared_ptr<pool> made(new pool);
  made->is_creator_ = true;
  auto joined = ipc::queue::create(shape);
  if (!joined) return from_queue(joined.error());
  made->queue_ = std::move(*joined);
  auto page = control_block::create(wanted.buffers);
  if (!page) return page.error();
  made->control_ = std::move(*page);
  auto memory_made = device_memory::create(**api, wanted, made->control_);
  if (!memory_made) return memory_made.error();
  made->memory_ = std::move(*memory_made);
  made->look_for_dead_processes();
  return made;
}

result<std::shared_ptr<pool>> pool::import(ipc::queue joined, ipc::detail::descriptor control_fd,
                                           ipc::detail::descriptor memory_fd) {
  auto api = driver::load();
  if (!api) return api.error();
  const surroundings where = surroundings::here();
  if (auto refused = refuse_platform(where)) return *refused;
  if (auto refused = refuse_uninitialised(**api)) return *refused;
  const std::shared_ptr<pool> made(new pool);
  made->queue_ = std::move(joined);
  auto page = control_block::open(std::move(control_fd));
  if (!page) return page.error();
  made->control_ = std::move(*page);
  // Pairs with close(). This process is already a participant of the queue. So either the creator sees this process, or
  // this process sees `is_closing`.
  if (made->control_.is_closing().load(std::memory_order_seq_cst) != 0) {
    return from_queue(
        {ipc::errc::closed, 0, made->about().pid, "CUDA: the pool is being closed by the process that created it"});
  }
  auto opened = device_memory::import(**api, made->control_, std::move(memory_fd));
  if (!opened) return opened.error();
  made->memory_ = std::move(*opened);
  made->look_for_dead_processes();
  return made;
}

// A call that waits for the queue also releases streams that wait for the work of dead processes.
void pool::look_for_dead_processes() {
  ipc::detail::at_each_look(queue_, [this] { memory_->release_streams(); });
}

pool::~pool() {
  // If other processes have the memory open, close() fails, and the memory stays until this process ends.
  if (mark_.is_ours() && is_creator_ && memory_) (void)close();
  if (mark_.is_ours() && memory_) end_postponed();
  // The memory is closed before this process leaves the queue. So only participants of the queue have the memory open.
  memory_.reset();
}

// Makes the stream `on` mark the message as ready when the work that the stream contains now is finished. Returns the
// number of the message.
result<std::uint32_t> pool::record_ready(std::uint32_t buffer, stream on) {
  if (auto follows = follow_use(buffer, on); !follows) return follows.error();
  buffer_control& entry = control_.buffer(buffer);
  const std::uint32_t number = entry.sent.load(std::memory_order_relaxed) + 1;
  if (const int answer = memory_->api().stream_write_value(on, memory_->ready_word(buffer), number, 0);
      answer != kSuccess) {
    return failed(answer, "cuStreamWriteValue32");
  }
  entry.sent.store(number, std::memory_order_release);
  if (auto noted = note_use(buffer, on); !noted) return noted.error();
  entry.last_reader.store(0, std::memory_order_release);
  return number;
}

bool pool::is_finished(std::uint32_t buffer, std::uint32_t message) const {
  const buffer_control& entry = control_.buffer(buffer);
  const std::uint64_t ready = entry.ready.load(std::memory_order_acquire);
  const auto now = static_cast<std::uint32_t>(ready);
  const bool is_abandoned = now == entry.sent.load(std::memory_order_acquire) + kAbandoned;
  return is_reached(is_abandoned ? static_cast<std::uint32_t>(ready >> 32) : now, message);
}

// Makes the stream `on` wait for all earlier work on the buffer. For each buffer, the control block records only the
// newest wait of a stream for a reader (`awaited`). If a reader dies, release_streams() can end only the recorded wait.
// So a new wait is recorded only when the work that the old wait waits for is finished. This call blocks until then, or
// until the deadline.
result<void> pool::settle(std::uint32_t buffer, stream on, deadline until) {
  const driver& api = memory_->api();
  buffer_control& entry = control_.buffer(buffer);
  // This process may still have work on the buffer: work for a loan that was never sent, or for a message that was
  // dropped before anybody received it.
  if (auto follows = follow_use(buffer, on); !follows) return follows;
  const reader last = reader::of(entry.last_reader.load(std::memory_order_acquire));
  if (last.at != reader::phase::released || is_reached(entry.done.load(std::memory_order_acquire), last.message) ||
      memory_->has_died(last.number)) {
    return {};
  }
  const reader before = reader::of(entry.awaited.load(std::memory_order_acquire));
  while (before.at == reader::phase::released && before.bits() != last.bits() &&
         !is_reached(entry.done.load(std::memory_order_acquire), before.message)) {
    memory_->release_streams();
    if (deadline::clock::now() >= until.at()) {
      return from_queue({ipc::errc::timeout, 0, 0,
                         "CUDA: the device has not finished a reader's work on an earlier message of this buffer"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  entry.awaited.store(last.bits(), std::memory_order_release);  // pairs with release_streams()
  if (const int answer = api.stream_wait_value(on, memory_->done_word(buffer), last.message, kWaitUntilAtLeast);
      answer != kSuccess) {
    return failed(answer, "cuStreamWaitValue32");
  }
  return note_use(buffer, on);
}

result<void> pool::note_use(std::uint32_t buffer, stream on) const {
  if (const int answer = memory_->note_use(buffer, on); answer != kSuccess) return failed(answer, "cuEventRecord");
  return {};
}

result<void> pool::follow_use(std::uint32_t buffer, stream on) const {
  if (const int answer = memory_->wait_for_use(buffer, on); answer != kSuccess) {
    return failed(answer, "cuStreamWaitEvent");
  }
  return {};
}

result<gpu_loan> pool::acquire(stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  {
    const current_context within(memory_->api(), memory_->context());
    if (auto fits = check_stream(on); !fits) return fits.error();
    retry_postponed();
  }
  auto got = queue_.acquire(until);
  if (!got) return from_queue(got.error());
  const current_context within(memory_->api(), memory_->context());
  if (auto settled = settle(got->index(), on, until); !settled) return settled.error();
  gpu_loan made;
  made.state_.reset(new gpu_loan::state{shared_from_this(), std::move(*got), on});
  return made;
}

// The stream may still have work on the buffer. note_use() records that work, and the next writer's stream waits for
// it.
void pool::give_back(ipc::loan unsent, stream on) {
  if (!unsent || !mark_.is_ours()) return;
  const current_context within(memory_->api(), memory_->context());
  if (check_stream(on) && note_use(unsent.index(), on)) return;
  const std::lock_guard held(lock_);
  postponed_.push_back({std::move(unsent), {}, on});
}

void pool::release_somehow(ipc::message read, stream on) {
  (void)release(read, on);
  if (!read || !mark_.is_ours()) return;
  const std::lock_guard held(lock_);
  postponed_.push_back({{}, std::move(read), on});
}

void pool::retry_postponed() {
  std::vector<postponed> all;
  {
    const std::lock_guard held(lock_);
    all.swap(postponed_);
  }
  for (postponed& one : all) {
    if (one.unsent) {
      give_back(std::move(one.unsent), one.on);
    } else {
      release_somehow(std::move(one.read), one.on);
    }
  }
}

// Only the destructor calls this. So no other call of the pool runs at the same time.
void pool::end_postponed() {
  const current_context within(memory_->api(), memory_->context());
  retry_postponed();
  // The program never got these messages. So they are parked, and not released.
  for (ipc::message& one : put_back_) (void)one.park();
  put_back_.clear();
  if (postponed_.empty()) return;
  // Nothing shows when the work on these buffers is finished. So the buffers and the memory stay as they are until the
  // process ends.
  memory_->keep_open();
  (void)new std::vector<postponed>(std::move(postponed_));  // leaked on purpose
}

result<void> pool::send(gpu_loan& from, std::size_t bytes, stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  if (!from || from.state_->from.get() != this) {
    return failure(errc::bad_option, "CUDA: the loan belongs to another pool, or was already sent");
  }
  if (bytes > about().bytes) {
    return from_queue({ipc::errc::too_large, 0, 0,
                       "CUDA: the message has " + std::to_string(bytes) +
                           " bytes, but a buffer of this pool has only " + std::to_string(about().bytes)});
  }
  ipc::loan& loan = from.state_->loan;
  const current_context within(memory_->api(), memory_->context());
  if (auto fits = check_stream(on); !fits) return fits;
  retry_postponed();
  auto number = record_ready(loan.index(), on);
  if (!number) return number.error();
  from.state_->on = on;
  const pool_message out{bytes, *number, 0};
  std::memcpy(loan.data(), &out, sizeof out);
  auto sent = queue_.send(std::move(loan), sizeof out, until);
  // The loan is empty if it was sent, or if other processes took this process for dead and recovered the loan. In both
  // cases, the caller no longer has the loan.
  if (!loan) from.state_.reset();
  if (!sent) return from_queue(sent.error());
  return {};
}

result<ipc::message> pool::next_message(deadline until) {
  {
    const std::lock_guard held(lock_);
    if (!put_back_.empty()) {
      ipc::message oldest = std::move(put_back_.front());
      put_back_.pop_front();
      return oldest;
    }
  }
  auto got = queue_.receive(until);
  if (!got) return from_queue(got.error());
  return std::move(*got);
}

result<gpu_message> pool::receive(stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  const char* const kClosed = "the driver freed the memory of the pool, so no message can be received";
  if (memory_->is_closed()) return producer_died(kClosed);
  {
    const current_context within(memory_->api(), memory_->context());
    if (auto fits = check_stream(on); !fits) return fits.error();
    retry_postponed();
  }
  auto got = next_message(until);
  const bool is_dead = memory_->is_producer_dead();
  if (is_dead) memory_->release_streams();
  if (is_dead && about().kind == memory::legacy) {
    if (got) (void)got->release();
    memory_->mark_closed();
    return producer_died(kClosed);
  }
  if (!got) return got.error();
  pool_message in{};
  if (got->size() == sizeof in) std::memcpy(&in, got->data(), sizeof in);
  if (got->size() != sizeof in || got->index() >= about().buffers || in.bytes > about().bytes) {
    const error why = failure(
        errc::untrusted,
        "CUDA: the queue of the pool had an invalid message, and parks it: the message has %zu bytes instead of "
        "%zu, is in buffer %u of %u, and says that %llu bytes of that buffer are used. A process has written to "
        "this queue without pool::send()",
        got->size(), sizeof in, got->index(), about().buffers, static_cast<unsigned long long>(in.bytes));
    (void)got->park();
    return why;
  }
  buffer_control& entry = control_.buffer(got->index());
  // `last_reader` is stored before any work of this reader starts, so the writer knows of all such work.
  const std::uint64_t before = entry.last_reader.load(std::memory_order_relaxed);
  // An earlier reader may have died between record_done() and the release of this message. Then `done` may have the
  // number of this message already. This process sets `done` back, so that the writer waits for this process. The
  // writer need not wait for the earlier reader, whose work has ended.
  std::uint32_t done = in.number;
  entry.done.compare_exchange_strong(done, in.number - 1, std::memory_order_acq_rel);
  const reader ours{memory_->number(), reader::phase::reading, in.number};
  entry.last_reader.store(ours.bits(), std::memory_order_release);  // pairs with settle()
  if (is_dead) {
    if (!is_finished(got->index(), in.number)) {
      return producer_died("the device had not finished writing this message, so the queue drops the message");
    }
  } else {
    const current_context within(memory_->api(), memory_->context());
    if (const int answer =
            memory_->api().stream_wait_value(on, memory_->ready_word(got->index()), in.number, kWaitUntilAtLeast);
        answer != kSuccess) {
      entry.last_reader.store(before, std::memory_order_release);
      const std::lock_guard held(lock_);
      put_back_.push_back(std::move(*got));
      return failed(answer, "cuStreamWaitValue32");
    }
    // This record makes close() wait until the wait of the stream `on` has ended, even if the message is released on
    // another stream.
    (void)note_use(got->index(), on);
  }
  gpu_message made;
  made.state_.reset(new gpu_message::state{shared_from_this(), std::move(*got), on, in.bytes});
  return made;
}

result<void> pool::record_done(std::uint32_t buffer, std::uint32_t message, stream on) {
  if (auto fits = check_stream(on); !fits) return fits;
  if (auto follows = follow_use(buffer, on); !follows) return follows;
  if (const int answer = memory_->api().stream_write_value(on, memory_->done_word(buffer), message, 0);
      answer != kSuccess) {
    return failed(answer, "cuStreamWriteValue32");
  }
  // Writing the word also uses the memory, so close() must wait for that write.
  if (auto noted = note_use(buffer, on); !noted) return noted;
  const reader ours{memory_->number(), reader::phase::released, message};
  control_.buffer(buffer).last_reader.store(ours.bits(), std::memory_order_release);  // pairs with settle()
  return {};
}

result<void> pool::release(ipc::message& read, stream on) {
  if (!mark_.is_ours()) return used_after_fork();
  pool_message in{};
  std::memcpy(&in, read.data(), sizeof in);
  const std::uint32_t buffer = read.index();
  {
    const current_context within(memory_->api(), memory_->context());
    if (auto recorded = record_done(buffer, in.number, on); !recorded) return recorded;
  }
  if (auto released = read.release(); !released) return from_queue(released.error());
  if (!memory_->is_producer_dead()) return {};
  memory_->release_streams();
  if (is_finished(buffer, in.number)) return {};
  return producer_died("the device had not finished this message, so what was read of it is not complete");
}

std::size_t pool::recover() {
  if (!mark_.is_ours()) return 0;
  if (memory_) memory_->release_streams();
  return queue_.recover();
}

result<void> pool::close() {
  if (!mark_.is_ours()) return used_after_fork();
  if (!memory_) return {};
  {
    const current_context within(memory_->api(), memory_->context());
    retry_postponed();
  }
  control_.is_closing().store(1, std::memory_order_seq_cst);  // pairs with import()
  (void)queue_.close_producer();                              // feed::direct
  queue_.recover();
  const ipc::snapshot seen = queue_.inspect();
  const auto me = static_cast<std::uint32_t>(getpid());
  std::string who;
  std::uint32_t first = 0;
  bool is_self_seen = false;
  for (const auto& one : seen.participants) {
    // A caretaker has the queue open, but not the device memory.
    if (one.is_caretaker) continue;
    if (one.pid == me && !is_self_seen) {
      is_self_seen = true;
      continue;
    }
    if (first == 0) first = one.pid;
    if (!who.empty()) who += ", ";
    who += "process " + std::to_string(one.pid) + " (" + one.name + ", ";
    who += one.pid == me ? "this one, by another handle)"
           : one.lives == ipc::snapshot::life::alive && one.state != 0
               ? std::string("alive, state ") + one.state + ")"
               : std::string("in another pid namespace, or its state is not known)");
  }
  if (who.empty() && seen.loaned != 0) {
    who = "this process, by " + std::to_string(seen.loaned) + " loans";
    first = me;
  }
  if (!who.empty()) {
    error why = failure(errc::in_use,
                        "CUDA: the pool's memory cannot be freed, because it is still open in %s: close it there first",
                        who.c_str());
    why.pid = first;
    return why;
  }
  memory_->allow_free();
  memory_.reset();
  queue_ = ipc::queue();
  return {};
}

}  // namespace forksight::ipc_cuda::detail
