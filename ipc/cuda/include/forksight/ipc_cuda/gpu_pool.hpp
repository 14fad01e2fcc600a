// A pool of buffers in the memory of a CUDA device. A queue passes the buffers from one process to others, without
// copying their bytes. send(), receive() and release() do not wait for the device. Instead, streams wait for each
// other, through two words for each buffer. The words are in host memory that all processes share, and the device reads
// and writes them. acquire() waits for the device in one case: a stream of the writer still waits for a reader of an
// earlier message of the same buffer.
//
// The process that creates a pool writes into the buffers. The processes that receive the pool read them. A process may
// die at any instruction, even while streams of other processes wait for its work. Then the other processes notice the
// death. The buffers of the dead process go back to the pool, and the waiting streams go on. docs/cuda-ipc.md says what
// was proven, and on which driver.
//
// The pool calls the CUDA driver through libcuda.so.1. If the process has not loaded this library, the pool loads it.
// During each call, the device's primary context is current. Streams must belong to this context, which the CUDA
// runtime also uses. The program must have initialised CUDA. Any number of threads may use a pool. But no other call on
// a pool may run while close(), a move or the destructor of that pool runs.
//
// Another process gets the pool once, over a connected UNIX socket. There is no other way: a descriptor of device
// memory can be passed only over a socket or by inheritance, and CUDA does not work in a forked child, which inherits
// descriptors. A handle of memory::legacy also comes over the socket: it is in a sealed file, whose descriptor is sent
// after that of the queue. A message of the queue contains only a length and the number of the message. The index of
// its buffer in the queue is also the index of the buffer in device memory.
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

// vmm_fd: memory of cuMemCreate(). The driver counts the users of the memory. legacy: memory of cuMemAlloc(), with a
// handle of cuIpcGetMemHandle(). The memory ends with the process that created it. mempool: memory of a stream-ordered
// pool. This kind is not implemented: the result is always `unsupported`.
enum class memory : std::uint8_t { vmm_fd, legacy, mempool };

struct pool_options {
  int device = 0;             // the number (ordinal) that the device has in this process
  std::uint32_t buffers = 4;  // 1 to 1024
  std::size_t bytes = 0;      // the size of each buffer
  memory kind = memory::vmm_fd;
  // 0: the pool allocates its own memory. Otherwise the address of memory that the program has allocated by
  // cuMemAlloc() or cudaMalloc(); `kind` must be legacy. The buffers begin at this address, each at a multiple of 256
  // bytes from this address. The readers can access the whole allocation that contains the address. The program must
  // not free the allocation before close() has succeeded.
  device_address existing = 0;
  ipc::on_death after_death = ipc::on_death::drop;
  ipc::full when_full = ipc::full::block;
  std::uint32_t max_participants = 16;
};

// A buffer to write into. Work on the stream that was passed to acquire() may write into the buffer. If the buffer is
// not sent, the destructor gives it back to the pool. If the stream is being captured into a graph at that time, a
// later call of the pool gives the buffer back.
class gpu_loan {
 public:
  gpu_loan();
  gpu_loan(gpu_loan&&) noexcept;
  gpu_loan& operator=(gpu_loan&&) noexcept;
  ~gpu_loan();
  device_address data() const;
  // In bytes; 0: the loan was sent or moved from.
  std::size_t capacity() const;
  std::uint32_t index() const;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class detail::pool;
  friend class gpu_pool;
  struct state;
  std::unique_ptr<state> state_;
};

// A buffer to read. Work on the stream that was passed to receive() may read the buffer. With memory::vmm_fd, the
// memory is mapped for reading only, except in the process that created the pool.
class gpu_message {
 public:
  gpu_message();
  gpu_message(gpu_message&&) noexcept;
  gpu_message& operator=(gpu_message&&) noexcept;
  // Calls release() with the stream that was passed to receive(). If release() fails, a later call of the pool, or the
  // end of the pool, releases the message.
  ~gpu_message();
  device_address data() const;
  std::size_t size() const;
  std::uint32_t index() const;
  std::uint32_t deliveries() const;
  explicit operator bool() const { return state_ != nullptr; }
  // Returns at once. Later work of the writer on the buffer waits for the work that the stream `on` contains now.
  // Errors: driver, queue (evicted), used_after_fork, capturing, bad_option (a stream of another context),
  // producer_died (the writer died before the device had finished this message, so what was read of it is not
  // complete). After the errors driver, capturing and bad_option, the object still has the message.
  result<void> release(stream on);

 private:
  friend class detail::pool;
  friend class gpu_pool;
  struct state;
  void end();
  std::unique_ptr<state> state_;
};

class gpu_pool {
 public:
  gpu_pool() = default;
  gpu_pool(gpu_pool&&) noexcept = default;
  gpu_pool& operator=(gpu_pool&&) noexcept;
  // Does what close() does, and waits as close() does. But if another process has the memory open, the memory stays
  // until this process ends.
  ~gpu_pool();

  // Errors: no_driver, not_initialised, initialised_in_parent, unsupported, no_device, bad_option, driver, queue.
  static result<gpu_pool> create(const pool_options& wanted);

  std::size_t buffer_bytes() const;
  memory kind() const;

  // All functions below may return used_after_fork, queue and driver. Those with a stream may also return capturing,
  // and bad_option for a stream that is not of the device's primary context. After an error other than `queue`, no
  // buffer and no message is lost.
  //
  // Returns a free buffer, into which work on the stream `on` may write. The stream waits for the work of the buffer's
  // last reader. The call itself waits if a stream still waits for a reader of an earlier message of this buffer.
  result<gpu_loan> acquire(stream on, deadline until = deadline::never());
  // Sends the first `bytes` of the loan. The streams of readers wait for the work that the stream `on` contains now.
  result<void> send(gpu_loan&& from, std::size_t bytes, stream on, deadline until = deadline::never());
  // Returns the oldest message. The stream `on` waits for the writer's work on the message. May also return
  // producer_died: the writer has died. With memory::legacy, this process can then receive nothing more, and data() is
  // 0 for messages that the program still has. With memory::vmm_fd, receive() still returns a message if the device had
  // finished the writer's work on it before the writer died. Otherwise receive() drops the message and returns this
  // error. The program may then call receive() for the next message. receive() also returns this error if the writer
  // has died and no message is left.
  result<gpu_message> receive(stream on, deadline until = deadline::never());

  // For the creator: ends sending, accepts no more readers, and frees the memory if no other process has it open.
  // Otherwise returns in_use. The text of this error names the processes that have the memory open. close() may be
  // called again. It also returns in_use while this process has a loan or another handle of the pool. For a reader:
  // closes the memory. Messages that the program still has keep the memory open. Before the memory is closed or freed,
  // close() waits for the work of this process on buffers that were sent, released or given back.
  result<void> close();
  // Gives back the buffers that dead members of the pool held. Returns how many members were found dead. Also releases
  // all streams, of any process, that wait for the work of a dead process. Each call that waits for a buffer or a
  // message does the same. A thread that waits in cuStreamSynchronize() does neither. So call recover() in another
  // thread, or in another process of the pool.
  std::size_t recover();

 private:
  friend result<void> send_pool(int, const gpu_pool&, deadline);
  friend result<gpu_pool> receive_pool(int, deadline);
  std::shared_ptr<detail::pool> pool_;
};

// Sends the pool over a connected AF_UNIX socket to a process of the same user, or of root. Errors: queue,
// used_after_fork.
result<void> send_pool(int socket, const gpu_pool& what, deadline until = deadline::never());
// Receives a pool, and opens its memory. A process opens the memory once, even if it receives the pool several times.
// The process that created the pool uses its own memory. Errors: those of create(), other_namespace, producer_died,
// untrusted.
result<gpu_pool> receive_pool(int socket, deadline until = deadline::never());

}  // namespace forksight::ipc_cuda
