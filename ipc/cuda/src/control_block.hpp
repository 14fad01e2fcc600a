// The control block describes a pool to the processes that receive it. It is a sealed memfd. A process copies the
// control block's facts to private memory once, checks them, and uses only the copy. The other words of the control
// block change while the pool is in use. These words say only when to wait, and never where memory is.
//
// Streams wait for words of the control block, and not for CUDA events. If the process of an event dies, a stream waits
// for this event for ever (seen with driver 580.159). The words are in host memory, so any process of the pool can
// release a stream that waits for a word (device_memory::release_streams).
//
// The control block's file also shows which processes of the pool live. Each process holds the lock of its own number
// in the file, as the members of a queue do (ipc/src/member_lock.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "descriptor.hpp"
#include "driver_types.hpp"
#include "forksight/ipc_cuda/gpu_pool.hpp"

namespace forksight::ipc_cuda::detail {

constexpr std::uint32_t kControlMagic = 0x32706766;  // "fgp2"
constexpr std::uint32_t kMaxBuffers = 1024;

struct facts {
  std::uint32_t magic;
  memory kind;
  std::uint8_t reserved[3];
  std::uint32_t buffers;
  std::uint32_t pid;
  std::uint32_t has_lock;  // 1: the creator holds the lock of number 0
  std::uint32_t reserved_too;
  std::uint64_t pid_namespace;
  std::uint64_t id[2];
  std::uint64_t bytes;   // the size of each buffer
  std::uint64_t stride;  // the distance from one buffer to the next
  std::uint64_t offset;  // the offset of the first buffer in the allocation that the handle names
  std::uint64_t total;   // the size of the allocation
  cu_uuid uuid;
  cu_ipc_handle handle;  // memory::legacy
  std::uint32_t reserved_last;
  std::uint32_t crc;  // CRC32C of all bytes before it
};
static_assert(sizeof(facts) == 168 && offsetof(facts, crc) == 164);

// Says which process read which message of a buffer, and whether that process has released the message. bits() puts all
// of this into one word.
struct reader {
  enum class phase : std::uint32_t { none, reading, released };
  std::uint32_t number = 0;  // the number of the process in this pool; kNoNumber: nothing shows whether it lives
  phase at = phase::none;
  std::uint32_t message = 0;  // the number of the message among the messages of its buffer

  std::uint64_t bits() const {
    return std::uint64_t{message} | std::uint64_t{number & 0x3fffffff} << 32 |
           std::uint64_t{static_cast<std::uint32_t>(at)} << 62;
  }
  static reader of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits >> 32) & 0x3fffffff, static_cast<phase>(bits >> 62),
            static_cast<std::uint32_t>(bits)};
  }
};
constexpr std::uint32_t kNoNumber = 0x3fffffff;

// The messages of a buffer are numbered from 1, modulo 2^32. `ready` is the last message for which the device has
// finished the writer's work. `done` is the last message for which the device has finished the reader's work. The
// device writes both words, and streams wait for them.
struct alignas(64) buffer_control {
  std::atomic<std::uint64_t> last_reader;
  std::atomic<std::uint64_t> awaited;  // the reader whose work the writer's stream waits for, or waited for last
  // The low half is the last message for which the writer's work is finished. If the writer has died, the low half is
  // `sent` + kAbandoned, so that no stream waits. The high half then has the previous value of the low half.
  std::atomic<std::uint64_t> ready;
  std::atomic<std::uint32_t> done;  // the last message for which the reader's work is finished
  std::atomic<std::uint32_t> sent;  // the number of the newest message
};
static_assert(sizeof(buffer_control) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);
constexpr std::uint32_t kAbandoned = 0x40000000;

// True if a stream that waits for `message` with CU_STREAM_WAIT_VALUE_GEQ goes on when the word has this value.
inline bool is_reached(std::uint32_t word, std::uint32_t message) {
  return static_cast<std::int32_t>(word - message) >= 0;
}

// The control block's first part. One buffer_control for each buffer follows it.
struct control_page {
  facts about;
  alignas(64) std::atomic<std::uint32_t> is_closing;
  std::atomic<std::uint32_t> numbers;  // the last number that was given to a process; the creator has 0
};
static_assert(sizeof(control_page) == 256);

class control_block {
 public:
  control_block() = default;
  control_block(control_block&& other) noexcept;
  control_block& operator=(control_block&& other) noexcept;
  control_block(const control_block&) = delete;
  control_block& operator=(const control_block&) = delete;
  ~control_block();

  // Makes a control block that has room for this number of buffers. publish() adds the facts.
  static result<control_block> create(std::uint32_t buffers);
  void publish(facts about);
  static result<control_block> open(ipc::detail::descriptor fd);

  const facts& about() const { return about_; }
  buffer_control& buffer(std::uint32_t index) const { return reinterpret_cast<buffer_control*>(page_ + 1)[index]; }
  std::atomic<std::uint32_t>& is_closing() const { return page_->is_closing; }
  // Returns a number that no other process of the pool has or had.
  std::uint32_t next_number() const { return page_->numbers.fetch_add(1, std::memory_order_relaxed) + 1; }
  int fd() const { return fd_.get(); }
  // The size of the file in bytes.
  std::size_t size() const { return mapped_; }
  static std::size_t offset_of(std::uint32_t buffer) { return sizeof(control_page) + buffer * sizeof(buffer_control); }

 private:
  result<void> map(std::size_t bytes);
  ipc::detail::descriptor fd_;
  control_page* page_ = nullptr;
  std::size_t mapped_ = 0;
  facts about_{};
};

}  // namespace forksight::ipc_cuda::detail
