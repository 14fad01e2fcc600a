// What a pool says of itself to those that receive it, in a sealed memfd: facts, which are copied to private memory
// once, checked, and believed only from there; and a few words that change, which only say when to wait, never where.
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
  std::uint64_t bytes;   // of a buffer
  std::uint64_t stride;  // from one to the next
  std::uint64_t offset;  // of the first, in the allocation that the handle names
  std::uint64_t total;   // of the allocation
  cu_uuid uuid;
  cu_ipc_handle handle;  // memory::legacy
  std::uint32_t reserved_too;
  std::uint32_t crc;  // CRC32C of all before it
};
static_assert(sizeof(facts) == 168 && offsetof(facts, crc) == 164);

// Who read a buffer last, and how far it has come. One word, for the writer to judge by when the buffer is free again.
struct reader {
  enum class phase : std::uint32_t { none, reading, recorded };
  std::uint32_t pid = 0;    // 0: of another pid namespace
  std::uint32_t start = 0;  // low 28 bits
  phase at = phase::none;
  bool is_unsettled = false;  // one before died reading

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
  cu_ipc_handle ready;  // the writer's work is done
  cu_ipc_handle done;   // the reader's is
  std::atomic<std::uint64_t> last_reader;
  std::atomic<std::uint32_t> is_finished;  // the writer has seen `ready` come true
};
static_assert(sizeof(card_buffer) == 192 && std::atomic<std::uint64_t>::is_always_lock_free);

// The buffers follow it.
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

  // Room for that many, not yet with facts.
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
