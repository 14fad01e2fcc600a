// Several threads initialise C++ statics. The constructor of one static throws once. Afterwards the program forks.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> attempts{0};
std::atomic<int> caught{0};

struct Flaky {
  Flaky() {
#ifndef NO_THROW
    if (attempts++ == 0) throw 1;
#endif
    value = 40;
  }
  int value;
};

int value_of_static() {
  static const Flaky flaky;
  static const std::unique_ptr<std::string> text = std::make_unique<std::string>("ab");
  return flaky.value + static_cast<int>(text->size());
}

void use(std::once_flag& once, std::atomic<int>& sum) {
  std::call_once(once, [&] { sum += 1000; });
  for (;;) {
    try {
      sum += value_of_static();
      return;
    } catch (int) {
      ++caught;
    }
  }
}

}  // namespace

int main() {
  std::atomic<int> sum{0};
  std::once_flag once;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { use(once, sum); });
  for (std::thread& thread : threads) thread.join();
  std::printf("sum %d, caught %d\n", sum.load(), caught.load());
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(value_of_static());
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::printf("child: %d\n", WEXITSTATUS(status));
  return 6;
}
