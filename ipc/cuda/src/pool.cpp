#include "pool.hpp"

#include <unistd.h>

#include <cstring>

#include "process.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

// The content of a message.
struct letter {
  std::uint64_t bytes;
};
constexpr std::uint64_t kStartMask = 0xfffffff;  // the bits that reader::start keeps

bool has_died(const reader& who) { return who.pid != 0 && process_watch(who.pid, who.start, kStartMask).has_ended(); }

error used_after_fork() {
  return failure(
      errc::used_after_fork,
      "CUDA: the pool is the parent process', and CUDA does not work in a forked child of a process that uses it: "
      "start the child by exec, and send it the pool");
}

}  // namespace

error pool::failed(int answer, const char* function) const {
  return failed_call(memory_->api(), answer, function, "CUDA: the pool of process %u", about().pid);
}

error pool::producer_died(const char* what) const {
  error why = failure(errc::producer_died, "CUDA: process %u, whose pool this is, has died: %s", about().pid, what);
  why.pid = about().pid;
  return why;
}

result<void> pool::check_usable() const {
  if (!mark_.is_ours()) return used_after_fork();
  if (!memory_) return from_queue({ipc::errc::closed, 0, 0, "CUDA: this pool was closed"});
  return {};
}

result<std::shared_ptr<pool>> pool::create(const pool_options& wanted) {
  if (wanted.kind == memory::mempool) {
    return failure(errc::unsupported, "CUDA: memory::mempool is not built: memory::vmm_fd does all that it would");
  }
  if (wanted.bytes == 0 || wanted.bytes > std::uint64_t{1} << 46 || wanted.buffers == 0 ||
      wanted.buffers > kMaxBuffers) {
    return failure(errc::bad_option, "CUDA: %u buffers of %zu bytes: 1 to %u buffers can be had, of at least one byte",
                   wanted.buffers, wanted.bytes, kMaxBuffers);
  }
  auto api = driver::load();
  if (!api) return api.error();
  if (auto refused = refuse_platform(surroundings::here())) return *refused;
  if (auto refused = refuse_uninitialised(**api)) return *refused;

  ipc::options shape;
  shape.slots = wanted.buffers;
  shape.buffers = wanted.buffers;
  shape.buffer_bytes = sizeof(letter);
  shape.after_death = wanted.after_death;
  shape.when_full = wanted.when_full;
  shape.max_participants = wanted.max_participants;
  shape.as = ipc::role::producer;
  shape.holds_references = true;
  if (shape.slots < 2) shape.slots = 2;
  const std::shared_ptr<pool> made(new pool);
  made->is_creator_ = true;
  made->unfinished_.resize(wanted.buffers);
  auto joined = ipc::queue::create(shape);
  if (!joined) return from_queue(joined.error());
  made->queue_ = std::move(*joined);
  auto page = card::create(wanted.buffers);
  if (!page) return page.error();
  made->card_ = std::move(*page);
  auto memory_made = device_memory::create(**api, wanted, made->card_);
  if (!memory_made) return memory_made.error();
  made->memory_ = std::move(*memory_made);
  return made;
}

result<std::shared_ptr<pool>> pool::import(ipc::queue joined, ipc::detail::descriptor card_fd,
                                           ipc::detail::descriptor memory_fd) {
  auto api = driver::load();
  if (!api) return api.error();
  const surroundings where = surroundings::here();
  if (auto refused = refuse_platform(where)) return *refused;
  if (auto refused = refuse_uninitialised(**api)) return *refused;
  const std::shared_ptr<pool> made(new pool);
  made->queue_ = std::move(joined);
  auto page = card::open(std::move(card_fd));
  if (!page) return page.error();
  made->card_ = std::move(*page);
  made->start_ = ipc::detail::start_time_of(static_cast<std::uint32_t>(getpid()));
  made->is_other_namespace_ = made->about().pid_namespace != where.pid_namespace;
  // Pairs with close(). This process is already a participant of the queue. So either the creator sees this process, or
  // this process sees `is_closing`.
  if (made->card_.is_closing().load(std::memory_order_seq_cst) != 0) {
    return from_queue(
        {ipc::errc::closed, 0, made->about().pid, "CUDA: the pool is being closed by the process that created it"});
  }
  auto opened = device_memory::import(**api, made->card_, std::move(memory_fd));
  if (!opened) return opened.error();
  made->memory_ = std::move(*opened);
  return made;
}

pool::~pool() {
  // If others have the memory open, close() fails, and the memory stays until this process ends.
  if (mark_.is_ours() && is_creator_ && memory_) (void)close();
  // The memory is closed before this process leaves the queue. So a process that is no participant has no memory open.
  memory_.reset();
}

result<void> pool::record_ready(std::uint32_t buffer, stream on) {
  const driver& api = memory_->api();
  const std::lock_guard held(lock_);
  if (const int answer = api.event_record(memory_->ready(buffer), on); answer != kSuccess) {
    return failed(answer, "cuEventRecord");
  }
  unfinished_[buffer] = true;
  return {};
}

void pool::note_finished() {
  const std::lock_guard held(lock_);
  for (std::uint32_t i = 0; i < unfinished_.size(); ++i) {
    if (!unfinished_[i] || memory_->api().event_query(memory_->ready(i)) != kSuccess) continue;
    unfinished_[i] = false;
    card_.buffer(i).is_finished.store(1, std::memory_order_release);  // pairs with receive()
  }
}

// Makes `on` wait for all earlier work on the buffer.
result<void> pool::settle(std::uint32_t buffer, stream on) {
  const driver& api = memory_->api();
  card_buffer& entry = card_.buffer(buffer);
  const reader last = reader::of(entry.last_reader.load(std::memory_order_acquire));
  const std::lock_guard held(lock_);
  // The buffer was sent and dropped before anybody received it, or it was never sent.
  if (unfinished_[buffer]) {
    if (const int answer = api.stream_wait_event(on, memory_->ready(buffer), 0); answer != kSuccess) {
      return failed(answer, "cuStreamWaitEvent");
    }
  }
  bool must_synchronize = last.at == reader::phase::reading || last.is_unsettled;
  if (last.at == reader::phase::recorded) {
    const int answer = api.event_query(memory_->done(buffer));
    if (answer != kSuccess && answer != kNotReady) return failed(answer, "cuEventQuery");
    if (answer == kNotReady && has_died(last)) {
      must_synchronize = true;
    } else if (answer == kNotReady) {
      if (const int waited = api.stream_wait_event(on, memory_->done(buffer), 0); waited != kSuccess) {
        return failed(waited, "cuStreamWaitEvent");
      }
    }
  }
  if (must_synchronize) {
    if (const int answer = api.context_synchronize(); answer != kSuccess) return failed(answer, "cuCtxSynchronize");
  }
  entry.last_reader.store(0, std::memory_order_relaxed);
  entry.is_finished.store(0, std::memory_order_relaxed);
  unfinished_[buffer] = false;
  return {};
}

result<gpu_loan> pool::acquire(stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  auto got = queue_.acquire(until);
  if (!got) return from_queue(got.error());
  const current_context within(memory_->api(), memory_->context());
  note_finished();
  if (auto settled = settle(got->index(), on); !settled) return settled.error();
  gpu_loan made;
  made.state_.reset(new gpu_loan::state{shared_from_this(), std::move(*got), on});
  return made;
}

void pool::give_back(ipc::loan& unsent, stream on) {
  if (!unsent || !mark_.is_ours()) return;
  const current_context within(memory_->api(), memory_->context());
  // The stream may still have work on the buffer. The next writer waits for that work.
  if (!record_ready(unsent.index(), on)) (void)memory_->api().context_synchronize();
  unsent = ipc::loan();
}

result<void> pool::send(gpu_loan& from, std::size_t bytes, stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  if (!from || from.state_->from.get() != this) {
    return failure(errc::bad_option, "CUDA: the loan is of another pool, or was sent");
  }
  if (bytes > about().bytes) {
    return from_queue(
        {ipc::errc::too_large, 0, 0,
         "CUDA: a message of " + std::to_string(bytes) + " bytes, buffers have " + std::to_string(about().bytes)});
  }
  ipc::loan& loan = from.state_->loan;
  const current_context within(memory_->api(), memory_->context());
  if (auto recorded = record_ready(loan.index(), on); !recorded) return recorded;
  from.state_->on = on;
  note_finished();
  const letter out{bytes};
  std::memcpy(loan.data(), &out, sizeof out);
  auto sent = queue_.send(std::move(loan), sizeof out, until);
  // The loan was sent, or other processes took this one for dead and took the loan. In both cases, the caller no longer
  // has it.
  if (!loan) from.state_.reset();
  if (!sent) return from_queue(sent.error());
  return {};
}

result<gpu_message> pool::receive(stream on, deadline until) {
  if (auto usable = check_usable(); !usable) return usable.error();
  const char* const kClosed = "its memory ended with it, and was closed here";
  if (memory_->is_closed()) return producer_died(kClosed);
  auto got = queue_.receive(until);
  const bool is_dead = memory_->is_producer_dead();
  if (is_dead && about().kind == memory::legacy) {
    if (got) (void)got->release();
    memory_->close_now();
    return producer_died(kClosed);
  }
  if (!got) return from_queue(got.error());
  letter in{};
  if (got->size() == sizeof in) std::memcpy(&in, got->data(), sizeof in);
  if (got->size() != sizeof in || got->index() >= about().buffers || in.bytes > about().bytes) {
    return failure(errc::untrusted, "CUDA: a message of %zu bytes for buffer %u says that it has %llu bytes",
                   got->size(), got->index(), static_cast<unsigned long long>(in.bytes));
  }
  card_buffer& entry = card_.buffer(got->index());
  // This is stored before any work of this reader starts, so the writer knows of all such work.
  const reader before = reader::of(entry.last_reader.load(std::memory_order_relaxed));
  reader ours;
  ours.pid = is_other_namespace_ ? 0 : static_cast<std::uint32_t>(getpid());
  ours.start = static_cast<std::uint32_t>(start_ & kStartMask);
  ours.at = reader::phase::reading;
  ours.is_unsettled = before.is_unsettled || before.at == reader::phase::reading;
  entry.last_reader.store(ours.bits(), std::memory_order_release);  // pairs with settle()
  if (is_dead) {
    if (entry.is_finished.load(std::memory_order_acquire) == 0) {  // pairs with note_finished()
      return producer_died("whether the device had finished this message is not known, so it is dropped");
    }
  } else {
    const current_context within(memory_->api(), memory_->context());
    if (const int answer = memory_->api().stream_wait_event(on, memory_->ready(got->index()), 0); answer != kSuccess) {
      return failed(answer, "cuStreamWaitEvent");
    }
  }
  gpu_message made;
  made.state_.reset(new gpu_message::state{shared_from_this(), std::move(*got), on, in.bytes});
  return made;
}

result<void> pool::release(ipc::message& read, stream on) {
  if (!mark_.is_ours()) return used_after_fork();
  card_buffer& entry = card_.buffer(read.index());
  result<void> outcome;
  // If the creator is dead, nobody writes into the buffer again, and its events must not be used.
  if (!memory_->is_closed() && !memory_->is_producer_dead()) {
    const current_context within(memory_->api(), memory_->context());
    if (const int answer = memory_->api().event_record(memory_->done(read.index()), on); answer == kSuccess) {
      reader ours = reader::of(entry.last_reader.load(std::memory_order_relaxed));
      ours.at = reader::phase::recorded;
      entry.last_reader.store(ours.bits(), std::memory_order_release);  // pairs with settle()
    } else {
      // The state stays `reading`. The writer then acts as if this reader had died.
      outcome = failed(answer, "cuEventRecord");
    }
  }
  if (auto released = read.release(); !released && outcome) outcome = from_queue(released.error());
  return outcome;
}

std::size_t pool::recover() { return mark_.is_ours() ? queue_.recover() : 0; }

result<void> pool::close() {
  if (!mark_.is_ours()) return used_after_fork();
  if (!memory_) return {};
  card_.is_closing().store(1, std::memory_order_seq_cst);  // pairs with import()
  (void)queue_.close_producer();                           // feed::direct
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
               : std::string("of another pid namespace, or not to be asked)");
  }
  if (who.empty() && seen.loaned != 0) {
    who = "this process, by " + std::to_string(seen.loaned) + " loans";
    first = me;
  }
  if (!who.empty()) {
    error why = failure(
        errc::in_use, "CUDA: the pool's memory cannot be freed, it is open in %s: close it there before", who.c_str());
    why.pid = first;
    return why;
  }
  memory_->allow_free();
  memory_.reset();
  queue_ = ipc::queue();
  return {};
}

}  // namespace forksight::ipc_cuda::detail
