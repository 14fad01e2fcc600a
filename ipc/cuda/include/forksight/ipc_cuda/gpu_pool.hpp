// Buffers in the memory of a CUDA device, passed from one process to others by a queue. No byte is copied and no host
// thread waits for the device: streams wait for each other, by two events a buffer that are made once.
//
// The process that creates a pool writes, those that receive it read. A reader that dies, at any instruction, is found
// dead, and its buffers are given back; see docs/cuda-ipc.md for what was proven, and on which driver.
//
// The driver's interface is used, through the libcuda.so.1 that the process has or finds; each call is made with the
// device's primary context current, which is that of the CUDA runtime: streams must be of it. CUDA must have been
// initialised by the program. A pool may be used by any number of threads.
//
// How others come by a pool: over a connected UNIX socket, once. A descriptor of device memory can travel in no other
// way but inheritance, and CUDA does not survive a fork; so legacy handles take the same way, in a sealed page beside
// the queue's descriptor. A message carries an index and a length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "forksight/ipc/options.hpp"
#include "forksight/ipc_cuda/result.hpp"

struct CUstream_st;

namespace forksight::ipc_cuda {
namespace detail {
class pool;
}
using ipc::deadline;
// CUstream, cudaStream_t; null: the default stream.
using stream = CUstream_st*;
// CUdeviceptr
using device_address = unsigned long long;

// vmm_fd: of cuMemCreate(), counted by the driver. legacy: of cuMemAlloc(), named by cuIpcGetMemHandle(); it ends with
// its process. mempool: of a stream-ordered pool; not built, always unsupported.
enum class memory : std::uint8_t { vmm_fd, legacy, mempool };

struct pool_options {
  int device = 0;             // ordinal, as this process numbers them
  std::uint32_t buffers = 4;  // 1 to 1024
  std::size_t bytes = 0;      // of each
  memory kind = memory::vmm_fd;
  ipc::on_death od = ipc::on_death::drop;
  ipc::full fl = ipc::full::block;
  std::uint32_t max_participants = 16;
};

// A buffer to write into, by work on the stream that it was acquired for. Goes back to the pool if it is not sent.
class gpu_loan {
 public:
  gpu_loan();
  gpu_loan(gpu_loan&&) noexcept;
  gpu_loan& operator=(gpu_loan&&) noexcept;
  ~gpu_loan();
  device_address data() const;
  // Bytes; 0: it was sent or moved from.
  std::size_t capacity() const;
  std::uint32_t index() const;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class detail::pool;
  friend class gpu_pool;
  struct state;
  std::unique_ptr<state> state_;
};

// A buffer to read, by work on the stream that it was received for.
class gpu_message {
 public:
  gpu_message();
  gpu_message(gpu_message&&) noexcept;
  gpu_message& operator=(gpu_message&&) noexcept;
  // release(), with the stream that it was received for.
  ~gpu_message();
  device_address data() const;
  std::size_t size() const;
  std::uint32_t index() const;
  std::uint32_t deliveries() const;
  explicit operator bool() const { return state_ != nullptr; }
  // Returns at once: the buffer is written again only after what `on` has been given by now. Errors: driver, queue
  // (evicted), used_after_fork.
  result<void> release(stream on);

 private:
  friend class detail::pool;
  friend class gpu_pool;
  struct state;
  std::unique_ptr<state> state_;
};

class gpu_pool {
 public:
  gpu_pool() = default;
  gpu_pool(gpu_pool&&) noexcept = default;
  gpu_pool& operator=(gpu_pool&&) noexcept;
  // As close(), but what is still in use elsewhere is left to the end of the process.
  ~gpu_pool();

  // Errors: no_driver, not_initialised, initialised_in_parent, unsupported, no_device, bad_option, driver, queue.
  static result<gpu_pool> create(const pool_options& wanted);

  std::size_t buffer_bytes() const;
  memory kind() const;

  // Errors of all that follow: used_after_fork, queue, driver.
  // A free buffer, for work on `on`, which waits for the last reader's.
  result<gpu_loan> acquire(stream on, deadline until = deadline::never());
  // `bytes` of the loan; readers' streams wait for what `on` has been given by now.
  result<void> send(gpu_loan&& from, std::size_t bytes, stream on, deadline until = deadline::never());
  // `on` waits for the writer's work. producer_died: memory::legacy: the memory is closed. memory::vmm_fd: what was
  // finished while the writer lived is still received; the one of which that is not known is dropped, with this error,
  // and the next may be asked for. With nothing left it says so, too.
  result<gpu_message> receive(stream on, deadline until = deadline::never());

  // Of the creator: sends no more, takes no more readers, and frees the memory if no other process has it open; else
  // in_use, which says who has, and may be called again. Of a reader: closes the memory; messages keep it open.
  result<void> close();
  // Gives back what dead readers held; how many there were. The blocking calls do it by themselves.
  std::size_t recover();

 private:
  friend result<void> send_pool(int, const gpu_pool&, deadline);
  friend result<gpu_pool> receive_pool(int, deadline);
  std::shared_ptr<detail::pool> pool_;
};

// Over a connected AF_UNIX socket, to a process of the same user. Errors: queue, used_after_fork.
result<void> send_pool(int socket, const gpu_pool& what, deadline until = deadline::never());
// Opens the memory, once a process however often the pool is received. In the process that created it, the memory is
// used as it is. Errors: those of create(), other_namespace, producer_died, untrusted.
result<gpu_pool> receive_pool(int socket, deadline until = deadline::never());

}  // namespace forksight::ipc_cuda
