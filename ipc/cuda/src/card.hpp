// The card describes a pool to the processes that receive it. It is a sealed memfd. Its facts are copied to private
// memory once and checked, and only the copy is used. A few other words change: they only say when to wait, and never
// where memory is.
#pragma once

#include <atomic>
#include <cstdint>

#include "descriptor.hpp"
#include "driver_types.hpp"
#include "forksight/ipc_cuda/gpu_pool.hpp"

namespace forksight::ipc_cuda::detail {

constexpr std::uint32_t kCardMagic = 0x31706766;  // "fgp1"
constexpr std::uint32_t kMaxBuffers = 1024;

struct facts {
  std::uint32_t magic;
  memory kind;
  std::uint8_t reserved[3];
  std::uint32_t buffers;
  std::uint32_t pid;
  std::uint64_t start;  // field 22 of /proc/PID/stat
  std::uint64_t pid_namespace;
  std::uint64_t id[2];
  std::uint64_t bytes;   // of each buffer
  std::uint64_t stride;  // from one buffer to the next
  std::uint64_t offset;  // of the first buffer, in the allocation that the handle names
  std::uint64_t total;   // of the allocation
  cu_uuid uuid;
  cu_ipc_handle handle;  // memory::legacy
  std::uint32_t reserved_too;
  std::uint32_t crc;  // CRC32C of all before it
};
static_assert(sizeof(facts) == 168 && offsetof(facts, crc) == 164);

// Who read a buffer last, and how far that reader came. It is one word. The writer uses it when the buffer is free
// again.
struct reader {
  enum class phase : std::uint32_t { none, reading, recorded };
  std::uint32_t pid = 0;    // 0: the reader is in another pid namespace
  std::uint32_t start = 0;  // low 28 bits of its start time
  phase at = phase::none;
  bool is_unsettled = false;  // an earlier reader died while it read

  std::uint64_t bits() const {
    return std::uint64_t{pid} | std::uint64_t{start & 0xfffffff} << 32 |
           std::uint64_t{static_cast<std::uint32_t>(at)} << 60 | std::uint64_t{is_unsettled} << 62;
  }
  static reader of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32) & 0xfffffff,
            static_cast<phase>(bits >> 60 & 3), (bits >> 62 & 1) != 0};
  }
};

struct alignas(64) card_buffer {
  cu_ipc_handle ready;  // event: the writer's work is done
  cu_ipc_handle done;   // event: the reader's work is done
  std::atomic<std::uint64_t> last_reader;
  std::atomic<std::uint32_t> is_finished;  // 1: the writer has seen that the event `ready` is complete
};
static_assert(sizeof(card_buffer) == 192 && std::atomic<std::uint64_t>::is_always_lock_free);

// The card's first part. The card_buffers follow it.
struct card_page {
  facts about;
  alignas(64) std::atomic<std::uint32_t> is_closing;
};
static_assert(sizeof(card_page) == 256);

class card {
 public:
  card() = default;
  card(card&& other) noexcept;
  card& operator=(card&& other) noexcept;
  card(const card&) = delete;
  card& operator=(const card&) = delete;
  ~card();

  // Makes a card with room for that many buffers, but without facts.
  static result<card> create(std::uint32_t buffers);
  void publish(facts about);
  static result<card> open(ipc::detail::descriptor fd);

  const facts& about() const { return about_; }
  card_buffer& buffer(std::uint32_t index) const { return reinterpret_cast<card_buffer*>(page_ + 1)[index]; }
  std::atomic<std::uint32_t>& is_closing() const { return page_->is_closing; }
  int fd() const { return fd_.get(); }

 private:
  result<void> map(std::size_t bytes);
  ipc::detail::descriptor fd_;
  card_page* page_ = nullptr;
  std::size_t mapped_ = 0;
  facts about_{};
};

}  // namespace forksight::ipc_cuda::detail
