// The memory and the events of a pool in this process. They are made here or opened here. All handles of the pool in
// this process share them, because the driver opens a legacy handle only once in a context.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "card.hpp"
#include "core.hpp"
#include "driver.hpp"
#include "process_watch.hpp"
#include "refusals.hpp"

namespace forksight::ipc_cuda::detail {

class device_memory {
 public:
  // Counts the handles of this process. In a forked child it does nothing: everything belongs to the parent.
  class use {
   public:
    use() = default;
    use(use&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    use& operator=(use&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~use() { reset(); }
    void reset();
    device_memory* operator->() const { return of_; }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    friend class device_memory;
    explicit use(device_memory* of) : of_(of) {}
    device_memory* of_ = nullptr;
  };

  // Makes memory and events, writes their handles to the card, and publishes the card.
  static result<use> create(const driver& api, const pool_options& wanted, card& on);
  // Opens the memory and the events of a pool. `fd`: the descriptor of memory::vmm_fd. The process that made the pool
  // gets its own memory again.
  static result<use> import(const driver& api, const card& from, ipc::detail::descriptor fd);

  const driver& api() const { return api_; }
  cu_context context() const { return context_; }
  cu_address at(std::uint32_t buffer) const { return base_ + offset_ + std::uint64_t{buffer} * stride_; }
  cu_event ready(std::uint32_t buffer) const { return ready_[buffer]; }
  cu_event done(std::uint32_t buffer) const { return done_[buffer]; }
  // True if the creator has died. Its events and its legacy memory must not be used then.
  bool is_producer_dead() const { return !is_made_here_ && producer_.has_ended(); }
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  void close_now();
  // The descriptor of memory::vmm_fd, for other processes; -1: they need none.
  int fd() const { return fd_.get(); }
  // Allows the memory to be freed. Without this call, it stays until the process ends, because others may have it open.
  void allow_free() { may_free_ = true; }

 private:
  explicit device_memory(const driver& api) : api_(api) {}
  ~device_memory() { close(); }
  result<void> enter(cu_device device);
  result<void> make_vmm(std::uint64_t bytes, facts& about);
  result<void> make_legacy(std::uint64_t bytes, facts& about);
  result<void> map_vmm(std::uint64_t bytes);
  result<void> make_events(const card& on);
  result<void> open_memory(const facts& about);
  result<void> open_events(const card& from);
  void close();

  const driver& api_;
  ipc::detail::fork_mark mark_;
  cu_device device_ = 0;
  cu_context context_ = nullptr;
  memory kind_{};
  bool is_made_here_ = false, may_free_ = true, is_mapped_ = false;
  cu_allocation_handle allocation_ = 0;
  bool has_allocation_ = false;
  cu_address base_ = 0;
  std::uint64_t reserved_ = 0;  // of memory::vmm_fd
  std::uint64_t offset_ = 0, stride_ = 0;
  ipc::detail::descriptor fd_;
  std::vector<cu_event> ready_, done_;
  process_watch producer_;
  std::atomic<bool> is_closed_{false};
  unsigned uses_ = 1;
  std::uint64_t id_[2] = {0, 0};
};

}  // namespace forksight::ipc_cuda::detail
