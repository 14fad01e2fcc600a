// Reads the frames of gpu_writer.cpp in device memory, without a copy between the processes. Usage: gpu_reader SOCKET
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <vector>

#include <forksight/ipc_cuda/gpu_pool.hpp>

#include "device.hpp"

int main(int argc, char** argv) {
  using namespace forksight;
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_reader SOCKET\n");
    return 2;
  }
  ipc_cuda::stream on = start_device();
  if (on == nullptr) return 1;
  sockaddr_un at{AF_UNIX, {}};
  std::snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[1]);
  const int writer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(writer, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return std::perror("gpu_reader"), 1;
  auto pool = ipc_cuda::receive_pool(writer);
  if (!pool) {
    std::fprintf(stderr, "gpu_reader: %s\n", pool.error().text.c_str());
    return 1;
  }
  std::vector<unsigned char> seen(pool->buffer_bytes());
  for (int frames = 0;; ++frames) {
    auto frame = pool->receive(on);
    if (!frame) {
      std::printf("%d frames; %s\n", frames, frame.error().text.c_str());
      return frame.error().queue == ipc::errc::closed ? 0 : 1;
    }
    cuMemcpyDtoHAsync_v2(seen.data(), frame->data(), frame->size(), on);
    // Before the writer's stream writes into the buffer again, it waits for this copy. So this thread can release the
    // frame without waiting for the copy.
    if (auto released = frame->release(on); !released) return 1;
    cuStreamSynchronize(on);
    for (const unsigned char byte : seen) {
      if (byte != static_cast<unsigned char>(frames)) return 1;
    }
  }
}
