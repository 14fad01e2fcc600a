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
#include "transport.hpp"

namespace forksight::bench {
namespace {

using clock = std::chrono::steady_clock;

struct Options {
  std::string transport, measure = "round_trip";
  Shape shape;
  bool touches = false;
  int cpu[2] = {-1, -1};
  double seconds = 0.3;
  unsigned producers = 0, consumers = 0;
  std::string victim;
  unsigned seed = 1;
};

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
struct Talk {
  int there[2], back[2];
  Talk() {
    must(pipe(there), "pipe");
    must(pipe(back), "pipe");
  }
  static void tell(int fd, std::uint64_t what) { must(write(fd, &what, sizeof what), "write"); }
  static std::uint64_t hear(int fd) {
    std::uint64_t what = 0;
    if (read(fd, &what, sizeof what) != static_cast<ssize_t>(sizeof what)) _exit(0);
    return what;
  }
};

// The second process runs this function. It echoes messages, or only receives them, until the first process is done.
void serve(Transport& over, const Options& options, const Talk& talk) {
  pin(options.cpu[1]);
  over.join(Side::kSecond);
  Talk::tell(talk.back[1], 0);
  std::uint64_t value = 0;
  for (;;) {
    const std::uint64_t count = Talk::hear(talk.there[0]);
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
    Talk::tell(talk.back[1], value);
  }
}

// Returns the seconds that `count` messages take.
double batch(Transport& over, const Options& options, const Talk& talk, std::uint64_t count, std::uint64_t& value) {
  Talk::tell(talk.there[1], count);
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
  if (Talk::hear(talk.back[0]) != value) fail("messages are missing");
  return std::chrono::duration<double>(clock::now() - start).count();
}

// Returns the seconds for a message: the median of nine batches. Each batch takes about a ninth of Options::seconds.
double measure(Transport& over, const Options& options, const Talk& talk) {
  std::uint64_t value = 0, count = 2 * options.shape.depth;
  // The first batch is not measured, because it touches every buffer for the first time.
  double took = batch(over, options, talk, count, value);
  for (took = batch(over, options, talk, count, value); took < options.seconds / 36;) {
    count *= 2;
    took = batch(over, options, talk, count, value);
  }
  count =
      std::max(std::uint64_t{2}, static_cast<std::uint64_t>(static_cast<double>(count) * options.seconds / 9 / took));
  std::vector<double> batches;
  for (int i = 0; i < 9; ++i) batches.push_back(batch(over, options, talk, count, value) / static_cast<double>(count));
  std::ranges::nth_element(batches, batches.begin() + 4);
  return batches[4];
}

std::unique_ptr<Transport> make(std::string_view name) {
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind.make();
  }
  std::fprintf(stderr, "bench_queue: no transport %.*s\n", static_cast<int>(name.size()), name.data());
  std::exit(2);
}

int measure_pair(const Options& options) {
  auto over = make(options.transport);
  over->prepare(options.shape);
  const Talk talk;
  const pid_t parent = getpid();
  const pid_t child = static_cast<pid_t>(must(fork(), "fork"));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(talk.there[1]);
    {
      const auto own = std::move(over);
      serve(*own, options, talk);
    }
    std::exit(0);
  }
  close(talk.back[1]);
  pin(options.cpu[0]);
  over->join(Side::kFirst);
  Talk::hear(talk.back[0]);
  const double value = measure(*over, options, talk);
  Talk::tell(talk.there[1], 0);
  waitpid(child, nullptr, 0);
  std::printf("{\"value\": %.9g}\n", value);
  return 0;
}

int list() {
  std::printf("[");
  for (const Kind& kind : kinds()) {
    std::printf("%s{\"name\": \"%s\", \"copies\": %s, \"spins\": %s, \"takes_many\": %s}",
                &kind == kinds().data() ? "" : ", ", std::string(kind.name).c_str(), kind.copies ? "true" : "false",
                kind.spins ? "true" : "false", kind.takes_many ? "true" : "false");
  }
  std::printf("]\n");
  return 0;
}

Options parse(int argc, char** argv) {
  Options made;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* const text = argv[i + 1];
    const auto number = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    if (name == "--transport")
      made.transport = text;
    else if (name == "--measure")
      made.measure = text;
    else if (name == "--name")
      made.shape.name = text;
    else if (name == "--bytes")
      made.shape.bytes = std::strtoull(text, nullptr, 10);
    else if (name == "--depth")
      made.shape.depth = number;
    else if (name == "--spin-us")
      made.shape.spin_us = std::strcmp(text, "ever") == 0 ? kSpinsForEver : number;
    else if (name == "--idle")
      made.shape.idle = number;
    else if (name == "--slots")
      made.shape.slots = number;
    else if (name == "--redeliver")
      made.shape.redelivers = number != 0;
    else if (name == "--touch")
      made.touches = number != 0;
    else if (name == "--cpu-first")
      made.cpu[0] = static_cast<int>(number);
    else if (name == "--cpu-second")
      made.cpu[1] = static_cast<int>(number);
    else if (name == "--seconds")
      made.seconds = std::strtod(text, nullptr);
    else if (name == "--producers")
      made.producers = number;
    else if (name == "--consumers")
      made.consumers = number;
    else if (name == "--kill")
      made.victim = text;
    else if (name == "--seed")
      made.seed = number;
    else {
      std::fprintf(stderr, "bench_queue: unknown option %s\n", argv[i]);
      std::exit(2);
    }
  }
  return made;
}

}  // namespace
}  // namespace forksight::bench

int main(int argc, char** argv) {
  using namespace forksight::bench;
  if (argc == 2 && std::string_view(argv[1]) == "--list") return list();
  const Options options = parse(argc, argv);
  if (options.measure == "crowd") {
    return run_crowd(*make(options.transport), {options.shape, options.producers, options.consumers, options.seconds,
                                                options.victim, options.seed});
  }
  return measure_pair(options);
}
