// The memory and the events of a pool in this process: made here, or opened here once, however many handles of the pool
// the process has. The driver wants it so: a legacy handle is opened once in a context.
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
  // Counts the handles of this process. In a forked child it does nothing: all of it is the parent's.
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

  // Makes memory and events, and writes their handles to the card, which is published with it.
  static result<use> create(const driver& api, const pool_options& wanted, card& on);
  // `fd`: of memory::vmm_fd. In the process that made it: the same.
  static result<use> import(const driver& api, const card& from, ipc::detail::descriptor fd);

  const driver& api() const { return api_; }
  cu_context context() const { return context_; }
  cu_address at(std::uint32_t buffer) const { return base_ + offset_ + std::uint64_t{buffer} * stride_; }
  cu_event ready(std::uint32_t buffer) const { return ready_[buffer]; }
  cu_event done(std::uint32_t buffer) const { return done_[buffer]; }
  // Events and legacy memory of a dead process are not touched.
  bool is_producer_dead() const { return !is_made_here_ && producer_.has_ended(); }
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  void close_now();
  // A descriptor for others, of memory::vmm_fd; -1: none is needed.
  int fd() const { return fd_.get(); }
  // Else the memory stays until the process ends, because others may have it open.
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
