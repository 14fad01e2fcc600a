// Measures how the speed of a queue depends on the number of its members. bench_queue_members MEASURE COUNT prints the
// figures as one JSON object.
//   misses COUNT: COUNT handles are attached. The figures are the nanoseconds of a receive() that finds nothing and
//     does not wait, the same for acquire(), and the microseconds of the slowest call.
//   idle COUNT: COUNT processes wait in receive(). The figure is the share of one processor, in percent, that all of
//     them use.
//   death COUNT: a process is killed while it has a buffer on loan, and COUNT others wait. The figures are the
//     milliseconds until one of them frees the buffer: the median and the maximum of nine deaths.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "forksight/ipc/queue.hpp"

namespace {

namespace ipc = forksight::ipc;
using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bench_queue_members: %s\n", why.c_str());
  std::exit(1);
}

ipc::queue make(ipc::role as = ipc::role::any) {
  ipc::options shape;
  shape.buffers = shape.slots = 16;
  shape.buffer_bytes = 64;
  shape.max_participants = 255;
  shape.as = as;
  auto made = ipc::queue::create(shape);
  if (!made) fail(made.error().text);
  return std::move(made).value();
}

double ns_of(clock_type::duration span) { return std::chrono::duration<double, std::nano>(span).count(); }

// Returns two figures in nanoseconds: the median time of a call in many batches, and the longest time of further calls
// that are timed one by one.
template <class Call>
std::array<double, 2> time_calls(Call call) {
  constexpr int kBatches = 201, kCalls = 500;
  std::vector<double> batches;
  for (int i = 0; i < kBatches; ++i) {
    const auto start = clock_type::now();
    for (int k = 0; k < kCalls; ++k) call();
    batches.push_back(ns_of(clock_type::now() - start) / kCalls);
  }
  double longest = 0;
  for (int i = 0; i < kCalls * kBatches; ++i) {
    const auto start = clock_type::now();
    call();
    longest = std::max(longest, ns_of(clock_type::now() - start));
  }
  std::ranges::nth_element(batches, batches.begin() + kBatches / 2);
  return {batches[kBatches / 2], longest};
}

int misses(unsigned count) {
  ipc::queue first = make();
  std::vector<ipc::queue> handles;
  for (unsigned i = 1; i < count; ++i) {
    auto one = ipc::queue::attach(first.fd());
    if (!one) fail(one.error().text);
    handles.push_back(std::move(one).value());
  }
  ipc::queue& last = handles.empty() ? first : handles.back();
  const auto empty = time_calls([&] {
    if (last.receive(ipc::deadline::now())) fail("receive() returned a message that nobody sent");
  });
  std::vector<ipc::loan> all;
  while (auto one = first.acquire(ipc::deadline::now())) all.push_back(std::move(one).value());
  const auto full = time_calls([&] {
    if (last.acquire(ipc::deadline::now())) fail("acquire() returned a buffer, although all buffers are lent");
  });
  std::printf("{\"receive_ns\": %.1f, \"acquire_ns\": %.1f, \"longest_us\": %.1f}\n", empty[0], full[0],
              std::max(empty[1], full[1]) / 1000);
  return 0;
}

std::vector<pid_t> start_waiters(const ipc::queue& q, unsigned count) {
  std::vector<pid_t> all;
  const pid_t parent = getpid();
  for (unsigned i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      auto own = ipc::queue::attach(q.fd());
      if (!own) _exit(1);
      while (own->receive()) {
      }
      _exit(0);
    }
    all.push_back(child);
  }
  const auto until = clock_type::now() + 60s;
  for (unsigned waiting = 0; waiting < count;) {
    if (clock_type::now() > until) fail("not all processes wait in receive()");
    std::this_thread::sleep_for(10ms);
    waiting = 0;
    for (const auto& one : q.inspect().participants) waiting += one.waits_for_message ? 1U : 0U;
  }
  return all;
}

void end(const std::vector<pid_t>& all) {
  for (const pid_t one : all) kill(one, SIGKILL);
  for (const pid_t one : all) waitpid(one, nullptr, 0);
}

// Returns the processor time of a process in nanoseconds. The first number in its schedstat is this time.
double used_ns(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/schedstat";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  double ns = 0;
  if (file == nullptr || std::fscanf(file, "%lf", &ns) != 1) fail(path + " cannot be read");
  std::fclose(file);
  return ns;
}

int idle(unsigned count) {
  const ipc::queue q = make();
  const std::vector<pid_t> all = start_waiters(q, count);
  std::this_thread::sleep_for(1500ms);
  const auto used = [&] {
    double sum = 0;
    for (const pid_t one : all) sum += used_ns(one);
    return sum;
  };
  const double before = used();
  const auto start = clock_type::now();
  std::this_thread::sleep_for(5s);
  const double share = (used() - before) / ns_of(clock_type::now() - start);
  end(all);
  std::printf("{\"percent\": %.3f}\n", share * 100);
  return 0;
}

int death(unsigned count) {
  // This handle is a producer, so that the queue still has a producer after the holder is killed.
  const ipc::queue q = make(ipc::role::producer);
  const std::vector<pid_t> all = start_waiters(q, count);
  std::vector<double> took;
  for (int round = 0; round < 9; ++round) {
    const pid_t holder = fork();
    if (holder == 0) {
      auto own = ipc::queue::attach(q.fd());
      auto lent = own->acquire();
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    waitpid(holder, &status, WUNTRACED);
    std::this_thread::sleep_for(std::chrono::milliseconds(13 * round));
    kill(holder, SIGKILL);
    waitpid(holder, &status, 0);
    const auto start = clock_type::now();
    while (q.inspect().loaned != 0) std::this_thread::sleep_for(1ms);
    took.push_back(ns_of(clock_type::now() - start) / 1e6);
  }
  end(all);
  std::ranges::sort(took);
  std::printf("{\"median_ms\": %.1f, \"longest_ms\": %.1f}\n", took[took.size() / 2], took.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    const std::string_view measure = argv[1];
    const auto count = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
    if (measure == "misses" && count >= 1 && count <= 255) return misses(count);
    if (measure == "idle" && count >= 1 && count <= 250) return idle(count);
    if (measure == "death" && count >= 1 && count <= 250) return death(count);
  }
  std::fprintf(stderr, "usage: bench_queue_members misses|idle|death COUNT\n");
  return 2;
}
