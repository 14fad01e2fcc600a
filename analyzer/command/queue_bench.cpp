#include "command/queue_bench.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "forksight/ipc/queue.hpp"

namespace forksight {
namespace {

using ipc::deadline;
using ipc::queue;
using namespace std::chrono_literals;

constexpr int kRounds = 2000;
constexpr int kSeries = 9;
constexpr std::size_t kSmall = 64;

// Remembers the processors on which the calling thread may run. The destructor restores them.
class Affinity {
 public:
  Affinity() { sched_getaffinity(0, sizeof before_, &before_); }
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;
  ~Affinity() { sched_setaffinity(0, sizeof before_, &before_); }
  int count() const { return CPU_COUNT(&before_); }
  // Moves the calling thread to the nth of the remembered processors.
  void pin(int nth) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_) && nth-- == 0) CPU_SET(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
  }

 private:
  cpu_set_t before_{};
};

// Returns the median of the series, in microseconds for one round trip. Returns a negative number if a round trip
// failed.
double measure(const std::function<bool()>& round_trip) {
  std::vector<double> series;
  for (int i = 0; i < kSeries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < kRounds; ++k) {
      if (!round_trip()) return -1;
    }
    series.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                     kRounds);
  }
  std::ranges::nth_element(series, series.begin() + kSeries / 2);
  return series[kSeries / 2];
}

double queue_round_trip(const Affinity& cpus, int child_cpu) {
  ipc::options shape;
  shape.buffer_bytes = kSmall;
  auto there = queue::create(shape), back = queue::create(shape);
  if (!there || !back) return -1;
  const std::array<char, kSmall> text{};
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    cpus.pin(child_cpu);
    auto in = there->reattach_after_fork(), out = back->reattach_after_fork();
    if (!in || !out) _exit(1);
    for (;;) {
      auto got = in->receive(deadline::after(5s));
      if (!got || !out->send_copy(got->data(), got->size(), deadline::after(5s))) _exit(0);
    }
  }
  const double cost = measure([&] {
    if (!there->send_copy(text.data(), text.size(), deadline::after(5s))) return false;
    return back->receive(deadline::after(5s)).has_value();
  });
  there->shutdown(false);
  waitpid(child, nullptr, 0);
  return cost;
}

double pipe_round_trip(const Affinity& cpus, int child_cpu) {
  std::array<int, 2> there{}, back{};
  if (pipe(there.data()) != 0 || pipe(back.data()) != 0) return -1;
  std::array<char, kSmall> text{};
  const auto whole = [&](int fd, bool is_read) {
    return (is_read ? read(fd, text.data(), text.size()) : write(fd, text.data(), text.size())) ==
           static_cast<ssize_t>(text.size());
  };
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    cpus.pin(child_cpu);
    close(there[1]);
    close(back[0]);
    while (whole(there[0], true) && whole(back[1], false)) {
    }
    _exit(0);
  }
  close(there[0]);
  close(back[1]);
  const double cost = measure([&] { return whole(there[1], false) && whole(back[0], true); });
  close(there[1]);
  close(back[0]);
  waitpid(child, nullptr, 0);
  return cost;
}

}  // namespace

ipc::result<std::string> queue_bench() {
  const Affinity cpus;
  std::string text = fmt::format("round trip of {} bytes between two processes, us, median of {} series of {}:\n",
                                 kSmall, kSeries, kRounds);
  for (int child_cpu = 0; child_cpu < std::min(cpus.count(), 2); ++child_cpu) {
    cpus.pin(0);
    const double by_queue = queue_round_trip(cpus, child_cpu);
    const double by_pipe = pipe_round_trip(cpus, child_cpu);
    if (by_queue < 0 || by_pipe < 0) {
      return ipc::error{ipc::errc::system, 0, 0, "queue bench: a process or a queue could not be made"};
    }
    text += fmt::format("  {}  queue {:7.2f}  pipe {:7.2f}\n", child_cpu == 0 ? "on one CPU " : "on two CPUs", by_queue,
                        by_pipe);
  }
  return text;
}

}  // namespace forksight
