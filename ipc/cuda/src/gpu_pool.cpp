#include "forksight/ipc_cuda/gpu_pool.hpp"

#include "descriptor_passing.hpp"
#include "forksight/ipc/handover.hpp"
#include "pool.hpp"

namespace forksight::ipc_cuda {
namespace {

constexpr ipc::detail::transfer_kind kPoolTransfer{0x6c706766, "GPU pool"};  // "fgpl"

error is_empty() {
  return detail::from_queue(
      {ipc::errc::closed, 0, 0, "CUDA: this pool is empty: gpu_pool::create() or receive_pool() makes one"});
}

}  // namespace

gpu_loan::state::~state() { from->give_back(std::move(loan), on); }
gpu_loan::gpu_loan() = default;
gpu_loan::gpu_loan(gpu_loan&&) noexcept = default;
gpu_loan& gpu_loan::operator=(gpu_loan&&) noexcept = default;
gpu_loan::~gpu_loan() = default;
device_address gpu_loan::data() const { return state_ ? state_->from->data(state_->loan.index()) : 0; }
std::size_t gpu_loan::capacity() const { return state_ ? state_->from->about().bytes : 0; }
std::uint32_t gpu_loan::index() const { return state_ ? state_->loan.index() : 0; }

gpu_message::gpu_message() = default;
gpu_message::gpu_message(gpu_message&&) noexcept = default;
gpu_message& gpu_message::operator=(gpu_message&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  return *this;
}
gpu_message::~gpu_message() { end(); }
void gpu_message::end() {
  if (const std::unique_ptr<state> ended = std::move(state_)) {
    ended->from->release_somehow(std::move(ended->message), ended->on);
  }
}
device_address gpu_message::data() const { return state_ ? state_->from->data(state_->message.index()) : 0; }
std::size_t gpu_message::size() const { return state_ ? state_->bytes : 0; }
std::uint32_t gpu_message::index() const { return state_ ? state_->message.index() : 0; }
std::uint32_t gpu_message::deliveries() const { return state_ ? state_->message.deliveries() : 0; }
result<void> gpu_message::release(stream on) {
  if (!state_) return {};
  auto released = state_->from->release(state_->message, on);
  if (!state_->message) state_.reset();
  return released;
}

gpu_pool& gpu_pool::operator=(gpu_pool&&) noexcept = default;
gpu_pool::~gpu_pool() = default;

result<gpu_pool> gpu_pool::create(const pool_options& wanted) {
  auto made = detail::pool::create(wanted);
  if (!made) return made.error();
  gpu_pool handle;
  handle.pool_ = std::move(*made);
  return handle;
}

std::size_t gpu_pool::buffer_bytes() const { return pool_ ? pool_->about().bytes : 0; }
memory gpu_pool::kind() const { return pool_ ? pool_->about().kind : memory::vmm_fd; }

result<gpu_loan> gpu_pool::acquire(stream on, deadline until) {
  if (!pool_) return is_empty();
  return pool_->acquire(on, until);
}
result<void> gpu_pool::send(gpu_loan&& from, std::size_t bytes, stream on, deadline until) {
  if (!pool_) return is_empty();
  return pool_->send(from, bytes, on, until);
}
result<gpu_message> gpu_pool::receive(stream on, deadline until) {
  if (!pool_) return is_empty();
  return pool_->receive(on, until);
}
result<void> gpu_pool::close() {
  if (!pool_) return {};
  if (auto usable = pool_->check_usable(); !usable) return usable;
  // For a reader, this handle only gives up its share of the memory, which stays open until the last message is
  // released.
  if (pool_->is_creator()) {
    if (auto closed = pool_->close(); !closed) return closed;
  }
  pool_.reset();
  return {};
}
std::size_t gpu_pool::recover() { return pool_ ? pool_->recover() : 0; }

result<void> send_pool(int socket, const gpu_pool& what, deadline until) {
  if (!what.pool_) return is_empty();
  if (auto usable = what.pool_->check_usable(); !usable) return usable;
  // The queue is sent first, so a receiver is a participant of the queue before it opens the memory.
  if (auto sent = ipc::send_queue(socket, what.pool_->as_queue(), until); !sent)
    return detail::from_queue(sent.error());
  const int fds[] = {what.pool_->control_fd(), what.pool_->memory_fd()};
  auto sent = ipc::detail::send_descriptors(socket, kPoolTransfer, {fds, fds[1] >= 0 ? 2u : 1u}, until);
  if (!sent) return detail::from_queue(sent.error());
  return {};
}

result<gpu_pool> receive_pool(int socket, deadline until) {
  auto joined = ipc::receive_queue(socket, ipc::role::consumer, until);
  if (!joined) return detail::from_queue(joined.error());
  auto files = ipc::detail::receive_descriptors(socket, kPoolTransfer, until);
  if (!files) return detail::from_queue(files.error());
  auto made = detail::pool::import(std::move(*joined), std::move((*files)[0]), std::move((*files)[1]));
  if (!made) return made.error();
  gpu_pool handle;
  handle.pool_ = std::move(*made);
  return handle;
}

}  // namespace forksight::ipc_cuda
