// The memory of a pool and the words of its control block, at the addresses that this process and its device use.
// Either this process has made the pool, or it has opened the pool of another process. All handles of the pool in this
// process share one object, because the driver opens a legacy handle only once in a context.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "control_block.hpp"
#include "core.hpp"
#include "driver.hpp"
#include "member_lock.hpp"
#include "refusals.hpp"

namespace forksight::ipc_cuda::detail {

class device_memory {
 public:
  // The share of one handle in the memory. When the last share ends, the memory is closed. In a forked child, the end
  // of a share does nothing, because the memory belongs to the parent.
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

  // Makes the memory, writes its handle to the control block, and publishes the control block.
  static result<use> create(const driver& api, const pool_options& wanted, control_block& on);
  // Opens the memory of a pool. `fd`: the descriptor of memory::vmm_fd. The process that made the pool gets its own
  // memory again.
  static result<use> import(const driver& api, const control_block& from, ipc::detail::descriptor fd);

  const driver& api() const { return api_; }
  cu_context context() const { return context_; }
  cu_device device() const { return device_; }
  cu_address at(std::uint32_t buffer) const { return base_ + offset_ + std::uint64_t{buffer} * stride_; }
  // The addresses of buffer_control::ready and buffer_control::done, for streams.
  cu_address ready_word(std::uint32_t buffer) const {
    return words_at_ + control_block::offset_of(buffer) + offsetof(buffer_control, ready);
  }
  cu_address done_word(std::uint32_t buffer) const {
    return words_at_ + control_block::offset_of(buffer) + offsetof(buffer_control, done);
  }
  // True if the creator has died. Then its legacy memory must not be used.
  bool is_producer_dead() const { return !is_made_here_ && has_lock_ && has_died(0); }
  // True if the process with this number in the pool is known to have died. Then the work of that process on the device
  // has ended, too: the Linux kernel tells the driver about the end of the address space before it releases the
  // process's lock. With driver 580.159, the CUDA kernel of a killed process went on writing for up to 11 ms after the
  // kill, and the lock was released after 23 ms or more.
  bool has_died(std::uint32_t number) const;
  // The number of this process in the pool; kNoNumber: other processes cannot find out whether this process lives.
  std::uint32_t number() const { return number_; }
  // Records that the work that the stream `on` contains now uses the buffer. close() waits for that work.
  int note_use(std::uint32_t buffer, cu_stream on) const { return api_.event_record(last_use_[buffer], on); }
  // Makes the stream `on` wait for the work that note_use() recorded last.
  int wait_for_use(std::uint32_t buffer, cu_stream on) const {
    return api_.stream_wait_event(on, last_use_[buffer], 0);
  }
  // Releases all streams, of any process, that wait for the work of a process that has died.
  void release_streams() const;
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  // Marks legacy memory whose creator has died. From then on, the pool gives the program no address in this memory. The
  // memory stays open until the last handle and the last message of this process end, because work on the device may
  // still use it.
  void mark_closed() { is_closed_.store(true, std::memory_order_release); }  // pairs with is_closed()
  // The descriptor with which other processes open memory::vmm_fd; -1: they need no descriptor.
  int fd() const { return fd_.get(); }
  // Lets the creator free the memory. Without this call, the memory stays until the process ends, because other
  // processes may have it open.
  void allow_free() { may_free_ = true; }
  // Keeps the memory until the process ends, because work of this process may still use it.
  void keep_open() { may_free_ = false; }

 private:
  explicit device_memory(const driver& api) : api_(api) {}
  ~device_memory();
  result<void> enter(cu_device device);
  result<void> make_vmm(std::uint64_t bytes, facts& about);
  result<void> make_legacy(std::uint64_t bytes, facts& about);
  result<void> take_existing(std::uint64_t bytes, cu_address at, facts& about);
  result<void> export_legacy(std::uint64_t bytes, facts& about);
  result<void> map_vmm(std::uint64_t bytes, int access);
  result<void> open_memory(const facts& about);
  result<void> map_words(const control_block& of);
  result<void> make_events(std::uint32_t buffers);
  // Takes the lock of that number, so that other processes notice the end of this process.
  result<void> take_lock(const control_block& of, std::uint32_t number);
  void wait_for_own_work() const;

  const driver& api_;
  ipc::detail::fork_mark mark_;
  cu_device device_ = 0;
  cu_context context_ = nullptr;
  memory kind_{};
  bool is_made_here_ = false, may_free_ = true, is_mapped_ = false, is_of_the_program_ = false;
  cu_allocation_handle allocation_ = 0;
  bool has_allocation_ = false;
  cu_address base_ = 0;
  std::uint64_t reserved_ = 0;  // only for memory::vmm_fd: the size of the address range
  std::uint64_t offset_ = 0, stride_ = 0;
  ipc::detail::descriptor fd_;
  std::vector<cu_event> last_use_;  // for each buffer: the event of its last use by this process
  char* words_ = nullptr;           // the control block, in memory that is registered with the driver
  std::size_t words_bytes_ = 0;
  bool is_registered_ = false;
  cu_address words_at_ = 0;
  std::uint32_t buffers_ = 0;
  ipc::detail::descriptor control_fd_;
  ipc::detail::member_lock_view lives_;
  void* lock_page_ = nullptr;
  std::uint32_t number_ = kNoNumber;
  bool has_lock_ = false;  // true: the creator holds the lock of number 0
  std::atomic<bool> is_closed_{false};
  unsigned uses_ = 1;
  std::uint64_t id_[2] = {0, 0};
};

}  // namespace forksight::ipc_cuda::detail
