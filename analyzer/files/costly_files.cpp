#include "files/costly_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <map>
#include <optional>
#include <unordered_map>

#include "files/budgets.hpp"
#include "files/descriptor.hpp"
#include "files/own_memory.hpp"

namespace forksight::files {
namespace {

constexpr std::size_t kMaxPath = 4096;

// The reading process shares this memory with its parent. The reading process may run foreign code, so the parent
// checks what it reads from the memory.
struct Shared {
  std::atomic<std::uint64_t> version;  // odd while the reading process changes this struct
  std::atomic<std::int64_t> cpu_ms;
  std::atomic<std::int64_t> all_cpu_ms;
  std::array<char, kMaxPath> path;  // "": no work
};

Shared* g_shared = nullptr;
bool g_is_announced = false;
std::string g_path;                                        // of the current work
std::int64_t g_began_ms = 0;                               // when the current work began
std::unordered_map<std::string, std::int64_t> g_spent_ms;  // by path
std::int64_t g_spent_on_all_ms = 0;                        // by this process
std::int64_t g_failed_ms = 0;  // the time of the attempts of earlier processes that have failed
std::int64_t g_seen_ms = 0;    // what the parent has seen of the time of the current process

std::uint64_t g_allowed_bytes = kMaxFileWorkBytes;  // for the work on all files
std::uint64_t g_taken_bytes = 0;                    // by the work on all files before the current work
std::uint64_t g_began_bytes = 0;                    // the memory of this process when the current work began

// `most`: the memory that this process may have; nullopt: as much as it may allow itself.
void limit_data(std::optional<std::uint64_t> most) {
  struct rlimit now {};
  if (::getrlimit(RLIMIT_DATA, &now) != 0) return;
  now.rlim_cur = most ? std::min<rlim_t>(now.rlim_max, *most) : now.rlim_max;
  ::setrlimit(RLIMIT_DATA, &now);
}

void limit_data_of_work() {
  // After a file that has used up what all files may take, an honest file still gets this.
  constexpr std::uint64_t kLeast = std::uint64_t{32} << 20U;
  if (g_began_bytes == 0) return;
  const std::uint64_t left = g_allowed_bytes - std::min(g_allowed_bytes, g_taken_bytes);
  limit_data(g_began_bytes + std::max(left, kLeast));
}

std::map<std::string, ReadLimit>& read_limits() {
  static std::map<std::string, ReadLimit> files;
  return files;
}

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  if (::clock_gettime(clock, &now) != 0) return 0;
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void publish(const std::string& path, std::int64_t cpu_ms, std::int64_t all_cpu_ms) {
  g_shared->version.fetch_add(1);
  const std::size_t size = std::min(path.size(), kMaxPath - 1);
  std::memcpy(g_shared->path.data(), path.data(), size);
  g_shared->path[size] = '\0';
  g_shared->cpu_ms = cpu_ms;
  g_shared->all_cpu_ms = all_cpu_ms;
  g_shared->version.fetch_add(1);
}

}  // namespace

ReadLimit read_limit_of(const std::string& path) {
  const auto found = read_limits().find(path);
  return found == read_limits().end() ? ReadLimit::kNone : found->second;
}

ReadLimit read_limit_of_all(bool is_program) {
  const std::int64_t spent = g_failed_ms + g_spent_on_all_ms;
  if (!g_is_announced || spent < kLongestWorkOnFiles.count()) return ReadLimit::kNone;
  const std::int64_t steps = (spent - kLongestWorkOnFiles.count()) / kLongestFurtherWorkOnFiles.count();
  if (steps == 0) return is_program ? ReadLimit::kNone : ReadLimit::kNoDebug;
  return static_cast<ReadLimit>(std::min<std::int64_t>(steps, static_cast<int>(ReadLimit::kNotRead)));
}

std::string describe_read_limit_of_all() {
  constexpr const char kBegin[] = "the files of the examined processes take too much time to read; forksight left out ";
  switch (read_limit_of_all(true)) {
    case ReadLimit::kNone:
      if (read_limit_of_all(false) == ReadLimit::kNone) return "";
      return std::string(kBegin) + "the debug information of all files but the main program: source lines are missing";
    case ReadLimit::kNoDebug: return std::string(kBegin) + "the debug information of files: source lines are missing";
    case ReadLimit::kNoFrames:
      return std::string(kBegin) +
             "debug information and call frame information of files: source lines are missing, and stacks may be "
             "incomplete";
    case ReadLimit::kNotRead: break;
  }
  return std::string(kBegin) + "some files: functions and source lines are missing, and stacks may be incomplete";
}

bool lower_read_limit(const std::string& path) {
  g_failed_ms += std::max<std::int64_t>(g_seen_ms, kCostOfFailure.count());
  g_seen_ms = 0;
  ReadLimit& limit = read_limits()[path];
  if (limit == ReadLimit::kNotRead) return false;
  limit = static_cast<ReadLimit>(static_cast<int>(limit) + 1);
  return true;
}

void begin_work() { g_failed_ms = 0; }

void share_work() {
  if (g_shared == nullptr) {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    g_shared = new (memory) Shared{};
  }
  publish("", 0, 0);
  g_seen_ms = 0;
}

void announce_work() { g_is_announced = g_shared != nullptr; }

CurrentWork current_work() {
  if (g_shared == nullptr) return {};
  const std::uint64_t version = g_shared->version;
  if (version % 2 != 0) return {};
  CurrentWork work;
  work.cpu_ms = g_shared->cpu_ms;
  work.all_cpu_ms = g_shared->all_cpu_ms;
  work.path.assign(g_shared->path.data(), ::strnlen(g_shared->path.data(), kMaxPath - 1));
  return g_shared->version == version ? work : CurrentWork{};
}

std::string find_costly_file(pid_t child) {
  const CurrentWork work = current_work();
  clockid_t clock{};
  if (work.path.empty() || ::clock_getcpuclockid(child, &clock) != 0) return {};
  const std::int64_t now = read_clock(clock);
  g_seen_ms = std::max(g_seen_ms, now - work.all_cpu_ms);
  const std::int64_t most = (read_limits().empty() ? kLongestFileWork : kLongestFurtherFileWork).count();
  return now - work.cpu_ms > most ? work.path : std::string();
}

void allow_memory_for(int fd, std::uint64_t unpacked) {
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks
  struct stat status {};
  if (!g_is_announced || ::fstat(fd, &status) != 0) return;
  g_allowed_bytes += kBlock * static_cast<std::uint64_t>(status.st_blocks) + 2 * unpacked;
  if (!g_path.empty()) limit_data_of_work();
}

FileWork::FileWork(const std::string& path) : exceptions_(std::uncaught_exceptions()) {
  if (!g_is_announced || !g_path.empty()) return;
  is_outermost_ = true;
  g_path = path;
  g_began_ms = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  publish(path, g_began_ms - g_spent_ms[path], g_began_ms - g_spent_on_all_ms);
  g_began_bytes = data_bytes().value_or(0);
  limit_data_of_work();
}

FileWork::~FileWork() {
  if (!is_outermost_ || std::uncaught_exceptions() > exceptions_) return;
  const std::int64_t spent = read_clock(CLOCK_PROCESS_CPUTIME_ID) - g_began_ms;
  g_spent_ms[g_path] += spent;
  g_spent_on_all_ms += spent;
  const std::uint64_t bytes = data_bytes().value_or(0);
  if (bytes > g_began_bytes) g_taken_bytes += bytes - g_began_bytes;
  g_path.clear();
  g_shared->path[0] = '\0';
  limit_data(std::nullopt);
}

}  // namespace forksight::files
