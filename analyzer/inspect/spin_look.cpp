#include "inspect/spin_look.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "image/stop.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::inspect {
namespace {

constexpr int kLooks = 12;
// On a busy machine, more looks are needed. A look does not count if the thread did not stop in time, or had not run
// since the look before.
constexpr int kMostLooks = 120;
constexpr std::chrono::seconds kLongest{6};
constexpr std::uint64_t kTurn_ns = 5'000'000;
constexpr std::uint64_t kProgress_ns = 500'000;
// How often read_words() is called between two looks.
constexpr int kReadsALook = 25;
constexpr std::chrono::milliseconds kPace{1};  // the time between two calls of read_words()
// How often each call of read_words() reads the word of each lock. A lock for which threads compete is free only for
// moments.
constexpr int kReadsInARow = 40;
constexpr std::size_t kMostSpinners = 16;
// A thread that spins stays within this many bytes of code. A loop that waits is small; a loop that computes is
// unrolled, or calls functions.
constexpr std::uint64_t kMostCode = 512;
constexpr std::uint64_t kMostStack = 256;  // calls of pause or sched_yield in the loop move the stack pointer by less

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
  int looks = 0;  // looks that count: the thread had run since the look before
  std::uint64_t ran_ns = 0;
};

// Returns the processor time of a thread. It is a multiple of a clock tick if the kernel does not count it exactly. 0:
// the thread has ended.
std::uint64_t read_runtime_ns(std::int32_t pid, std::int32_t tid) {
  constexpr std::uint64_t kTick_ns = 10'000'000;  // USER_HZ is 100
  const std::string text = proc::read_file(proc::task_path(pid, tid, "schedstat")).text;
  const std::string_view all = text;
  if (const auto ran = proc::parse_decimal(all.substr(0, all.find(' '))); ran && *ran > 0)
    return static_cast<std::uint64_t>(*ran);
  const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid, tid, "stat")).text);
  return stat ? stat->cpu_ticks * kTick_ns : 0;
}

// A thread that is ready to run but gets no processor keeps its locks. The threads that wait for these locks then stay
// in place, but these threads are not stuck. So each thread of the process that is ready to run must have got processor
// time during the looks.
class Turns {
 public:
  explicit Turns(std::int32_t pid) : pid_(pid) { note(); }
  void note() {
    for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid_, "task")).numbers) {
      const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid_, tid, "stat")).text);
      if (stat && stat->state == 'R') began_.try_emplace(tid, read_runtime_ns(pid_, tid));
    }
  }
  // All living threads that were ready to run at some time.
  std::vector<std::int32_t> tids() const {
    std::vector<std::int32_t> tids;
    for (const auto& [tid, ran] : began_) {
      if (read_runtime_ns(pid_, tid) != 0) tids.push_back(tid);
    }
    return tids;
  }
  bool all_had_one() const {
    return std::ranges::all_of(began_, [&](const auto& entry) {
      const std::uint64_t now = read_runtime_ns(pid_, entry.first);
      return now == 0 || now >= entry.second + kTurn_ns;
    });
  }

 private:
  std::int32_t pid_;
  std::map<std::int32_t, std::uint64_t> began_;  // by tid, for all threads that were seen ready to run
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
    for (Seen& seen : seen_) {
      for (int read = 0; read < kReadsInARow && seen.spinner.word != 0 && !seen.has_left; ++read) {
        seen.has_left = value_of(seen.spinner) != seen.value;
      }
    }
  }

  void stop_each() {
    for (Seen& seen : seen_) {
      if (!seen.has_left) stop(seen);
    }
  }

  // True if there is a lock for which all waiting threads have stayed in place. (A thread that gets the lock leaves its
  // place. This shows that the lock is still released.) Also true if a thread for which no lock is known has stayed in
  // place.
  bool any_stayed() const {
    return std::ranges::any_of(seen_, [&](const Seen& seen) {
      if (seen.spinner.word == 0) return has_stayed(seen);
      return std::ranges::all_of(
          seen_, [&](const Seen& other) { return other.spinner.word != seen.spinner.word || has_stayed(other); });
    });
  }

  // True if a lock is lost: its holder never releases it. A lock counts as lost only if every running thread of the
  // process waits for it. Otherwise another running thread may release the lock and always take it again before the
  // waiting threads get it. The looks would then never see the lock free. Also true if a thread for which no lock is
  // known has stayed in place.
  bool any_is_lost(const std::vector<std::int32_t>& running) const {
    return std::ranges::any_of(seen_, [&](const Seen& seen) {
      if (seen.spinner.word == 0) return has_stayed(seen);
      return std::ranges::all_of(running, [&](std::int32_t tid) {
        return std::ranges::any_of(seen_, [&](const Seen& other) {
          return other.spinner.tid == tid && other.spinner.word == seen.spinner.word && has_stayed(other);
        });
      });
    });
  }

  bool is_enough() const {
    return std::ranges::all_of(seen_, [](const Seen& seen) { return seen.has_left || seen.looks >= kLooks; });
  }

 private:
  static bool has_stayed(const Seen& seen) {
    return !seen.has_left && seen.stack.is_within(kMostStack) && seen.code.is_within(kMostCode);
  }

  std::optional<std::uint32_t> value_of(const Spinner& spinner) const {
    return spinner.word == 0 ? std::nullopt : memory_.value<std::uint32_t>(spinner.word);
  }

  // Stops the thread for a moment and notes its place in the code. If the thread has hardly run since the last look, it
  // could not have left its place, so the look does not count.
  void stop(Seen& seen) {
    const std::uint64_t ran = read_runtime_ns(copy_.pid, seen.spinner.tid);
    if (ran < seen.ran_ns + kProgress_ns) return;
    seen.ran_ns = ran;
    image::Thread thread;
    thread.tid = seen.spinner.tid;
    thread.state = 'R';
    copy_.threads = {thread};
    image::stop_and_read_registers(copy_, std::array{thread.tid});
    const image::Thread& stopped = copy_.threads.front();
    if (!stopped.registers) return;  // the thread did not get a processor in time to stop
    ++seen.looks;
    const bool gives_way = stopped.call && stopped.call->number == SYS_sched_yield;
    if (stopped.call && !gives_way) {
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
  Turns turns(image.pid);
  bool is_enough = false;
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  const auto may_go_on = [&](int look) { return look < kMostLooks && std::chrono::steady_clock::now() < deadline; };
  for (int look = 0; may_go_on(look) && !is_enough && looks.any_stayed(); ++look) {
    looks.stop_each();
    for (int read = 0; read < kReadsALook && looks.any_stayed(); ++read) {
      std::this_thread::sleep_for(kPace);
      looks.read_words();
    }
    turns.note();
    is_enough = looks.is_enough() && turns.all_had_one();
  }
  return is_enough && looks.any_stayed() && looks.any_is_lost(turns.tids());
}

}  // namespace forksight::inspect
