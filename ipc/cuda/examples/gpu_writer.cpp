// Sends frames in device memory to gpu_reader.cpp. Waits at a socket until a reader connects. Sends the pool to the
// reader, and then the frames. Usage: gpu_writer SOCKET [FRAMES]
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <forksight/ipc_cuda/gpu_pool.hpp>

#include "device.hpp"

namespace {

using namespace forksight::ipc_cuda;

int fail(const error& why) {
  std::fprintf(stderr, "gpu_writer: %s: %s\n", name_of(why.code), why.text.c_str());
  return 1;
}

int accept_one(const char* path) {
  sockaddr_un at{AF_UNIX, {}};
  std::snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0) return -1;
  std::puts("listening");
  std::fflush(stdout);
  return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: gpu_writer SOCKET [FRAMES]\n");
    return 2;
  }
  const int frames = argc > 2 ? std::atoi(argv[2]) : 100;
  stream on = start_device();
  if (on == nullptr) return 1;
  pool_options shape;
  shape.buffers = 4;
  shape.bytes = 1 << 20;
  auto made = gpu_pool::create(shape);
  if (!made) return fail(made.error());
  const int reader = accept_one(argv[1]);
  if (reader < 0) return std::perror("gpu_writer"), 1;
  if (auto sent = send_pool(reader, *made); !sent) return fail(sent.error());
  for (int frame = 0; frame < frames; ++frame) {
    // The writer's stream waits for the reader's stream. This thread waits for the device only in acquire(), and only
    // if the device is a whole round of the buffers behind.
    auto buffer = made->acquire(on, deadline::after(std::chrono::seconds(30)));
    if (!buffer) return fail(buffer.error());
    cuMemsetD8Async(buffer->data(), static_cast<unsigned char>(frame), buffer->capacity(), on);
    if (auto sent = made->send(std::move(*buffer), shape.bytes, on); !sent) return fail(sent.error());
  }
  // While the reader has the memory open, close() fails, and the memory is not freed. So the writer waits until the
  // reader has ended, and calls close() again.
  auto closed = made->close();
  if (!closed && closed.error().code == errc::in_use) {
    char byte = 0;
    while (read(reader, &byte, 1) > 0) {
    }
    closed = made->close();
  }
  return closed ? 0 : fail(closed.error());
}
