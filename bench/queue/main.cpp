// Measures one figure of one transport in some tenths of a second. Prints {"value": N} to stdout. queues.py calls this
// program for each transport in each round.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "crowd.hpp"
#include "options.hpp"
#include "transport.hpp"

namespace forksight::bench {
namespace {

using clock = std::chrono::steady_clock;

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  must(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
}

void fill(void* at, std::size_t bytes, std::uint64_t value) {
  std::uint64_t* const words = static_cast<std::uint64_t*>(at);
  std::fill(words, words + bytes / sizeof value, value);
}

std::uint64_t sum(const void* at, std::size_t bytes) {
  const std::uint64_t* const words = static_cast<const std::uint64_t*>(at);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bytes / sizeof total; ++i) total += words[i];
  return total;
}

// Two pipes for control messages, which are not measured. The first process says how many messages it sends next. The
// second process confirms that they have arrived.
struct PipePair {
  int there[2], back[2];
  PipePair() {
    must(pipe(there), "pipe");
    must(pipe(back), "pipe");
  }
  static void tell(int fd, std::uint64_t what) { must(write(fd, &what, sizeof what), "write"); }
  static std::uint64_t receive_number(int fd) {
    std::uint64_t what = 0;
    if (read(fd, &what, sizeof what) != static_cast<ssize_t>(sizeof what)) _exit(0);
    return what;
  }
};

// The second process runs this function. It echoes messages, or only receives them, until the first process is done.
void serve(Transport& over, const Options& options, const PipePair& pipe_pair) {
  pin(options.cpu[1]);
  over.join(Side::kSecond);
  PipePair::tell(pipe_pair.back[1], 0);
  std::uint64_t value = 0;
  for (;;) {
    const std::uint64_t count = PipePair::receive_number(pipe_pair.there[0]);
    if (count == 0) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      const void* const got = over.receive();
      ++value;
      if (options.touches && sum(got, options.shape.bytes) != value * (options.shape.bytes / sizeof value)) {
        fail("a received message has wrong content");
      }
      if (options.measure == "round_trip") {
        if (*static_cast<const std::uint64_t*>(got) != value) fail("a received message has wrong content");
        void* const answer = over.loan();
        std::memcpy(answer, got, options.shape.bytes);
        over.release();
        over.send();
      } else {
        over.release();
      }
    }
    PipePair::tell(pipe_pair.back[1], value);
  }
}

// Returns the seconds that `count` messages take.
double batch(Transport& over, const Options& options, const PipePair& pipe_pair, std::uint64_t count,
             std::uint64_t& value) {
  PipePair::tell(pipe_pair.there[1], count);
  const auto start = clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    void* const at = over.loan();
    ++value;
    if (options.touches) {
      fill(at, options.shape.bytes, value);
    } else {
      *static_cast<std::uint64_t*>(at) = value;
    }
    over.send();
    if (options.measure == "round_trip") {
      if (*static_cast<const std::uint64_t*>(over.receive()) != value) fail("a received answer has wrong content");
      over.release();
    }
  }
  if (PipePair::receive_number(pipe_pair.back[0]) != value) fail("messages are missing");
  return std::chrono::duration<double>(clock::now() - start).count();
}

// Returns the seconds for a message: the median of nine batches. Each batch takes about a ninth of Options::seconds.
double measure(Transport& over, const Options& options, const PipePair& pipe_pair) {
  std::uint64_t value = 0, count = 2 * options.shape.depth;
  // The first batch is not measured, because it touches every buffer for the first time.
  double took = batch(over, options, pipe_pair, count, value);
  for (took = batch(over, options, pipe_pair, count, value); took < options.seconds / 36;) {
    count *= 2;
    took = batch(over, options, pipe_pair, count, value);
  }
  count =
      std::max(std::uint64_t{2}, static_cast<std::uint64_t>(static_cast<double>(count) * options.seconds / 9 / took));
  std::vector<double> batches;
  for (int i = 0; i < 9; ++i)
    batches.push_back(batch(over, options, pipe_pair, count, value) / static_cast<double>(count));
  std::ranges::nth_element(batches, batches.begin() + 4);
  return batches[4];
}

std::unique_ptr<Transport> make(std::string_view name) {
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind.make();
  }
  fail("no transport " + std::string(name));
}

int measure_pair(const Options& options) {
  auto over = make(options.transport);
  over->prepare(options.shape);
  const PipePair pipe_pair;
  const pid_t parent = getpid();
  const pid_t child = static_cast<pid_t>(must(fork(), "fork"));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(pipe_pair.there[1]);
    {
      const auto own = std::move(over);
      serve(*own, options, pipe_pair);
    }
    std::exit(0);
  }
  close(pipe_pair.back[1]);
  pin(options.cpu[0]);
  over->join(Side::kFirst);
  PipePair::receive_number(pipe_pair.back[0]);
  const double value = measure(*over, options, pipe_pair);
  PipePair::tell(pipe_pair.there[1], 0);
  waitpid(child, nullptr, 0);
  std::printf("{\"value\": %.9g}\n", value);
  return 0;
}

}  // namespace
}  // namespace forksight::bench

int main(int argc, char** argv) {
  using namespace forksight::bench;
  const Options options = parse(argc, argv);
  if (options.measure == "crowd") {
    return run_crowd(*make(options.transport), {options.shape, options.producers, options.consumers, options.seconds,
                                                options.victim, options.seed});
  }
  return measure_pair(options);
}
