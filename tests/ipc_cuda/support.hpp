// Helpers for child processes that use a device. CUDA does not work in a forked child of a process that has used CUDA.
// So the test process itself never calls CUDA. Only its children do.
#pragma once

#include <dlfcn.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <ostream>
#include <vector>

#include "../ipc/child.hpp"
#include "driver_types.hpp"
#include "forksight/ipc_cuda/gpu_pool.hpp"

namespace forksight::ipc_cuda {
inline void PrintTo(memory kind, std::ostream* out) { *out << (kind == memory::legacy ? "legacy" : "vmm_fd"); }
}  // namespace forksight::ipc_cuda

namespace forksight::ipc_cuda::test {

using namespace std::chrono_literals;
using namespace detail;
using ipc::test::baton;
using ipc::test::child;

// For use in a child: if the condition is false, prints it and ends the child with status 1.
#define MUST(condition)                                                           \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::fprintf(stderr, "%s:%d: false: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                                   \
    }                                                                             \
  } while (0)

template <class Result>
auto must(Result from) {
  if (!from) {
    std::fprintf(stderr, "unexpected: %s: %s\n", name_of(from.error().code), from.error().text.c_str());
    _exit(1);
  }
  if constexpr (requires { *from; }) return std::move(*from);
}

inline deadline soon() { return deadline::after(20s); }

class sockets {
 public:
  sockets() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0) std::abort();
  }
  sockets(const sockets&) = delete;
  sockets& operator=(const sockets&) = delete;
  ~sockets() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int ours() const { return ends_[0]; }
  int theirs() const { return ends_[1]; }

 private:
  int ends_[2] = {-1, -1};
};

// Pointers to the functions of the driver. The constructor finds them by their names with dlsym().
struct functions {
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "driver_functions.def"
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "program_functions.def"

  functions() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    MUST(library != nullptr);
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters)             \
  member = reinterpret_cast<decltype(member)>(dlsym(library, #symbol)); \
  MUST(member != nullptr);
#include "driver_functions.def"
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters)             \
  member = reinterpret_cast<decltype(member)>(dlsym(library, #symbol)); \
  MUST(member != nullptr);
#include "program_functions.def"
  }
};

// A device, and the functions of the driver. `on` and `aside` are two streams that do not wait for the default stream.
struct gpu : functions {
  explicit gpu(int ordinal = 0) {
    MUST(init(0) == 0);
    MUST(device_get(&device, ordinal) == 0);
    MUST(primary_retain(&context, device) == 0);
    MUST(context_set(context) == 0);
    MUST(stream_create(&on, 1) == 0);
    MUST(stream_create(&aside, 1) == 0);
    MUST(memory_alloc(&gate, 256) == 0);
    void* memory = nullptr;
    MUST(host_alloc(&memory, kPinned) == 0);
    pinned = static_cast<unsigned char*>(memory);
  }
  void fill(device_address at, unsigned char value, std::size_t bytes) const {
    MUST(set_async(at, value, bytes, on) == 0);
  }
  // Waits for all work of `on`. Returns whether all bytes then have this value.
  bool is_filled(device_address at, unsigned char value, std::size_t bytes) const {
    std::vector<unsigned char> seen(bytes, static_cast<unsigned char>(~value));
    MUST(copy_out_async(seen.data(), at, bytes, on) == 0);
    MUST(stream_synchronize(on) == 0);
    return seen == std::vector<unsigned char>(bytes, value);
  }
  // Adds to the stream a copy into the memory `pinned`, and returns at once. A copy into pageable memory would wait for
  // the stream.
  void copy_later(device_address from, std::size_t bytes) const {
    MUST(bytes <= kPinned && copy_out_async(pinned, from, bytes, on) == 0);
  }
  bool has_copied(unsigned char value, std::size_t bytes) const {
    return std::vector<unsigned char>(pinned, pinned + bytes) == std::vector<unsigned char>(bytes, value);
  }
  // Work that is added to `on` after shut_gate() does not start before open_gate() is called. The gate is a word of
  // device memory.
  void shut_gate() {
    const unsigned shut = 0;
    MUST(copy_in_async(gate, &shut, sizeof shut, aside) == 0);
    MUST(stream_synchronize(aside) == 0);
    MUST(stream_wait_value(on, gate, 1, 0) == 0);
  }
  void open_gate() {
    const unsigned open = 1;
    MUST(copy_in_async(gate, &open, sizeof open, aside) == 0);
    MUST(stream_synchronize(aside) == 0);
  }

  cu_device device = 0;
  cu_context context = nullptr;
  cu_stream on = nullptr, aside = nullptr;
  cu_address gate = 0;
  static constexpr std::size_t kPinned = 8192;
  unsigned char* pinned = nullptr;
};

inline pool_options small(memory kind, std::uint32_t buffers = 2) {
  pool_options wanted;
  wanted.kind = kind;
  wanted.buffers = buffers;
  wanted.bytes = 5000;
  return wanted;
}

// Makes a pool, and sends it over the socket.
inline gpu_pool make_pool(const pool_options& wanted, int socket) {
  gpu_pool made = must(gpu_pool::create(wanted));
  must(send_pool(socket, made, soon()));
  return made;
}

inline void send_filled(gpu& at, gpu_pool& to, unsigned char value, std::size_t bytes = 5000) {
  gpu_loan loan = must(to.acquire(at.on, soon()));
  at.fill(loan.data(), value, bytes);
  must(to.send(std::move(loan), bytes, at.on, soon()));
}

}  // namespace forksight::ipc_cuda::test
