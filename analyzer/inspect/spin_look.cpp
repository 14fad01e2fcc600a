#include "inspect/spin_look.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "image/stop.hpp"

namespace forksight::inspect {
namespace {

constexpr int kLooks = 12;
constexpr int kReadsALook = 25;  // of the words, as far apart as this:
constexpr std::chrono::milliseconds kPace{1};
constexpr std::size_t kMostSpinners = 16;
constexpr std::uint64_t kMostCode = 512;   // a loop that waits is small; one that computes is unrolled, or calls others
constexpr std::uint64_t kMostStack = 256;  // a call of pause or sched_yield

struct Range {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  void add(std::uint64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool is_within(std::uint64_t size) const { return least > most || most - least <= size; }
};

struct Seen {
  Spinner spinner;
  std::optional<std::uint32_t> value;
  Range code;
  Range stack;
  bool has_left = false;
};

class Looks {
 public:
  Looks(const image::Image& image, std::span<const Spinner> spinners) : memory_(*image.memory) {
    copy_.pid = image.pid;
    copy_.memory = image.memory;
    for (const Spinner& spinner : spinners.first(std::min(spinners.size(), kMostSpinners))) {
      seen_.push_back({spinner, value_of(spinner), {}, {}, false});
    }
  }

  void read_words() {
    for (Seen& seen : seen_) seen.has_left = seen.has_left || value_of(seen.spinner) != seen.value;
  }

  void stop_each() {
    for (Seen& seen : seen_) {
      if (!seen.has_left) stop(seen);
    }
  }

  bool any_stayed() const {
    return std::ranges::any_of(seen_, [](const Seen& seen) {
      return !seen.has_left && seen.stack.is_within(kMostStack) && seen.code.is_within(kMostCode);
    });
  }

 private:
  std::optional<std::uint32_t> value_of(const Spinner& spinner) const {
    return spinner.word == 0 ? std::nullopt : memory_.value<std::uint32_t>(spinner.word);
  }

  void stop(Seen& seen) {
    image::Thread thread;
    thread.tid = seen.spinner.tid;
    thread.state = 'R';
    copy_.threads = {thread};
    image::stop_and_read_registers(copy_, std::array{thread.tid});
    const image::Thread& stopped = copy_.threads.front();
    const bool gives_way = stopped.call && stopped.call->number == SYS_sched_yield;
    if (!stopped.registers || (stopped.call && !gives_way)) {
      seen.has_left = true;
      return;
    }
    seen.stack.add((*stopped.registers)[symbols::kRsp].value_or(0));
    if (!gives_way) seen.code.add((*stopped.registers)[symbols::kReturnAddress].value_or(0));
  }

  const image::Memory& memory_;
  image::Image copy_;
  std::vector<Seen> seen_;
};

}  // namespace

bool any_stays_in_place(const image::Image& image, std::span<const Spinner> spinners) {
  Looks looks(image, spinners);
  for (int look = 0; look < kLooks && looks.any_stayed(); ++look) {
    looks.stop_each();
    for (int read = 0; read < kReadsALook && looks.any_stayed(); ++read) {
      std::this_thread::sleep_for(kPace);
      looks.read_words();
    }
  }
  return looks.any_stayed();
}

}  // namespace forksight::inspect
