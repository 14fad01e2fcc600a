// Sends frames to consumer.cpp: makes a named queue, prints its name, and sends until it has sent all frames or an
// error ends it. Usage: producer [FRAMES]
#include <forksight/ipc/queue.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  namespace ipc = forksight::ipc;
  using namespace std::chrono_literals;
  const int frames = argc > 1 ? std::atoi(argv[1]) : 100;
  ipc::options shape;
  shape.backing = ipc::strategy::named;
  shape.slots = 8;
  shape.buffers = 8;
  shape.buffer_bytes = 1 << 20;
  shape.after_death = ipc::on_death::redeliver;  // if a consumer dies, its frame goes to another consumer
  shape.as = ipc::role::producer;
  auto made = ipc::queue::create(shape);
  if (!made) {
    std::fprintf(stderr, "producer: %s\n", made.error().text.c_str());
    return 1;
  }
  std::printf("%s\n", made->name().c_str());
  std::fflush(stdout);
  for (int frame = 0; frame < frames; ++frame) {
    auto buffer = made->acquire(ipc::deadline::after(30s));
    if (!buffer) {
      std::fprintf(stderr, "producer: %s\n", buffer.error().text.c_str());
      return 1;
    }
    std::memset(buffer->data(), frame & 0xff, buffer->capacity());
    if (auto sent = made->send(std::move(*buffer), buffer->capacity(), ipc::deadline::after(30s)); !sent) {
      std::fprintf(stderr, "producer: %s\n", sent.error().text.c_str());
      return 1;
    }
  }
  return 0;
}
