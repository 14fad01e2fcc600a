// Measures how long it takes to hand a buffer of a CUDA device to another process through a pool of ipc/cuda. No CUDA
// kernel runs, so the figures contain only the times of the calls and of the streams' waits.
// Usage: bench_gpu_pool vmm_fd|legacy BYTES MESSAGES
//
// Prints one line of JSON. `handoff_us` is the time of one message with a pool of 4 buffers. `round_trip_us` is the
// time of one message with a pool of one buffer. This time includes the wait until the writer's device may write into
// the buffer again.
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "forksight/ipc_cuda/gpu_pool.hpp"

namespace {

using namespace forksight::ipc_cuda;
using clock_type = std::chrono::steady_clock;

struct CUctx_st;
struct functions {
  int (*init)(unsigned) = find<int (*)(unsigned)>("cuInit");
  int (*retain)(CUctx_st**, int) = find<int (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain");
  int (*set)(CUctx_st*) = find<int (*)(CUctx_st*)>("cuCtxSetCurrent");
  int (*create)(stream*, unsigned) = find<int (*)(stream*, unsigned)>("cuStreamCreate");
  int (*synchronize)(stream) = find<int (*)(stream)>("cuStreamSynchronize");

  template <class Function>
  static Function find(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    void* const found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
      std::fprintf(stderr, "bench_gpu_pool: no driver with %s\n", name);
      std::exit(77);
    }
    return reinterpret_cast<Function>(found);
  }
};

stream start(const functions& cuda) {
  CUctx_st* context = nullptr;
  stream on = nullptr;
  if (cuda.init(0) != 0 || cuda.retain(&context, 0) != 0 || cuda.set(context) != 0 || cuda.create(&on, 1) != 0) {
    std::fprintf(stderr, "bench_gpu_pool: no device\n");
    std::exit(77);
  }
  return on;
}

template <class Result>
auto must(Result got) {
  if (!got) {
    std::fprintf(stderr, "bench_gpu_pool: %s\n", got.error().text.c_str());
    std::exit(1);
  }
  if constexpr (requires { *got; }) return std::move(*got);
}

// Starts a writer and a reader, which share a pool. The writer sends all messages to the reader. Returns the
// microseconds of one message.
double measure(memory kind, std::size_t bytes, std::uint32_t buffers, int messages) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(1);
  const int warm_up = messages / 10 + 1;
  const pid_t reader = fork();
  if (reader == 0) {
    const functions cuda;
    stream on = start(cuda);
    gpu_pool pool = must(receive_pool(ends[1]));
    for (int i = 0; i < messages + warm_up; ++i) {
      gpu_message got = must(pool.receive(on));
      must(got.release(on));
    }
    must(pool.close());
    _exit(write(ends[1], "", 1) == 1 ? 0 : 1);
  }
  // CUDA does not work in a forked child of a process that uses it. So the writer is a child, too, and not this
  // process.
  int figures[2];
  if (pipe(figures) != 0) std::exit(1);
  const pid_t writer = fork();
  if (writer == 0) {
    const functions cuda;
    stream on = start(cuda);
    pool_options shape;
    shape.kind = kind;
    shape.bytes = bytes;
    shape.buffers = buffers;
    gpu_pool pool = must(gpu_pool::create(shape));
    must(send_pool(ends[0], pool));
    auto begin = clock_type::now();
    for (int i = 0; i < messages + warm_up; ++i) {
      if (i == warm_up) begin = clock_type::now();
      gpu_loan loan = must(pool.acquire(on));
      // With one buffer, the stream now waits for the reader's stream.
      if (buffers == 1) cuda.synchronize(on);
      must(pool.send(std::move(loan), bytes, on));
    }
    const double us = std::chrono::duration<double, std::micro>(clock_type::now() - begin).count() / messages;
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) _exit(1);
    must(pool.close());
    _exit(write(figures[1], &us, sizeof us) == sizeof us ? 0 : 1);
  }
  int status = 0;
  double us = 0;
  bool failed = false;
  for (const pid_t one : {reader, writer}) {
    waitpid(one, &status, 0);
    if (status != 0 && !failed) {
      failed = true;
      if (one == reader) kill(writer, SIGKILL);
    }
  }
  if (failed || read(figures[0], &us, sizeof us) != sizeof us) std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  for (const int end : {ends[0], ends[1], figures[0], figures[1]}) close(end);
  return us;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || (std::strcmp(argv[1], "vmm_fd") != 0 && std::strcmp(argv[1], "legacy") != 0)) {
    std::fprintf(stderr, "usage: bench_gpu_pool vmm_fd|legacy BYTES MESSAGES\n");
    return 2;
  }
  const memory kind = std::strcmp(argv[1], "legacy") == 0 ? memory::legacy : memory::vmm_fd;
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const int messages = std::atoi(argv[3]);
  const double handoff = measure(kind, bytes, 4, messages), trip = measure(kind, bytes, 1, messages);
  std::printf("{\"handoff_us\": %.2f, \"round_trip_us\": %.2f}\n", handoff, trip);
}
