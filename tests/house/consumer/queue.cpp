#include <forksight/ipc/queue.hpp>

#include <cstdio>

int main() {
  auto made = forksight::ipc::queue::create({});
  if (!made || !made->send_copy("installed", 9)) return 1;
  auto got = made->receive();
  if (!got) return 1;
  std::printf("%.*s\n", static_cast<int>(got->size()), static_cast<const char*>(got->data()));
  return 0;
}
