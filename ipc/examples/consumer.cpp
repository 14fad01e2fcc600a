// Receives the frames of producer.cpp. Several consumers may run at once. Usage: consumer NAME
#include <forksight/ipc/queue.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  namespace ipc = forksight::ipc;
  if (argc != 2) {
    std::fprintf(stderr, "usage: consumer NAME\n");
    return 2;
  }
  auto from = ipc::queue::attach(std::string(argv[1]), ipc::role::consumer);
  if (!from) {
    std::fprintf(stderr, "consumer: %s\n", from.error().text.c_str());
    return 1;
  }
  int frames = 0;
  for (;;) {
    auto frame = from->receive();
    if (!frame) {
      std::printf("%d frames; %s\n", frames, frame.error().text.c_str());
      return frame.error().code == ipc::errc::closed ? 0 : 1;
    }
    const auto* const bytes = static_cast<const unsigned char*>(frame->data());
    for (std::size_t i = 0; i < frame->size(); ++i) {
      if (bytes[i] != bytes[0]) return 1;
    }
    ++frames;
  }
}
