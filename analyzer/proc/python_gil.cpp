#include "proc/python_gil.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <array>
#include <string_view>

#include "forksight/abi/condition.hpp"
#include "forksight/abi/mutex.hpp"
#include "forksight/abi/thread.hpp"

namespace forksight::proc {
namespace {

// Offsets in struct _gil_runtime_state. The first members of the struct are the interval in microseconds, the thread
// state of the last holder, whether the GIL is taken, and how often the GIL went to another thread. The condition
// variable and its mutex follow.
constexpr std::uint64_t kHolder = 8;
constexpr std::uint64_t kIsTaken = 16;
constexpr std::uint64_t kCondition = 32;
constexpr std::uint64_t kMutex = kCondition + abi::kConditionBytes;
constexpr std::uint64_t kLongestInterval = 1ULL << 40U;
// The number of words of a PyThreadState that are searched for its member thread_id. This member contains
// pthread_self(). In the known versions, thread_id has an offset from 136 to 176 bytes.
constexpr std::uint64_t kSearchedWords = 64;

bool is_taken_gil(const ReadWord& read, const abi::ConditionLayout& layout, std::uint64_t gil) {
  const auto interval = read(gil, 8);
  const auto wrefs = read(gil + kCondition + layout.wrefs, 4);
  const auto kind = read(gil + kMutex + offsetof(abi::Mutex, kind), 4);
  if (!interval || *interval == 0 || *interval > kLongestInterval || read(gil + kIsTaken, 4) != 1) return false;
  if (!wrefs || *wrefs >> 3U == 0 || (*wrefs & abi::Condition::kShared) != 0) return false;
  return kind && (*kind & ~std::uint64_t{abi::Mutex::kElision}) == 0;
}

// Returns the tid of the thread whose struct pthread is at `pointer`; 0: there is no struct pthread, or the thread has
// ended.
std::int32_t find_tid(const ReadWord& read, const abi::ThreadLayout& layout, std::uint64_t pointer) {
  constexpr std::uint64_t kAlignment = 64;
  if (pointer == 0 || pointer % kAlignment != 0) return 0;
  if (read(pointer, 8) != pointer || read(pointer + abi::kSelfInThread, 8) != pointer) return 0;
  const auto tid = static_cast<std::int32_t>(read(pointer + layout.tid, 4).value_or(0));
  return tid > 0 ? tid : 0;
}

// Returns the tid of the thread that this PyThreadState names; 0: it names none, or several.
std::int32_t find_thread_of_state(const ReadWord& read, const abi::ThreadLayout& layout, std::uint64_t state) {
  std::int32_t found = 0;
  for (std::uint64_t word = 0; word < kSearchedWords; ++word) {
    const auto pointer = read(state + word * 8, 8);
    if (!pointer) break;
    const std::int32_t tid = find_tid(read, layout, *pointer);
    if (tid == 0 || tid == found) continue;
    if (found != 0) return 0;
    found = tid;
  }
  return found;
}

}  // namespace

bool is_timed_private_wait(const Syscall& call) {
  const auto operation = static_cast<std::uint32_t>(call.args[1]);
  const std::uint32_t command = operation & ~static_cast<std::uint32_t>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  return call.in_syscall && call.number == SYS_futex && call.args[3] != 0 && (operation & FUTEX_PRIVATE_FLAG) != 0 &&
         (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
}

std::optional<GilWait> find_gil_wait(const Syscall& call, abi::Version libc, const ReadWord& read) {
  const abi::ThreadLayout* const thread = abi::thread_layout(libc);
  if (thread == nullptr || !is_timed_private_wait(call)) return std::nullopt;
  const std::uint64_t word = call.args[0];
  for (const abi::ConditionLayout* layout : {&abi::kConditionWithReferences, &abi::kConditionWithoutReferences}) {
    for (const std::uint64_t group : {0U, 4U}) {
      const std::uint64_t before = kCondition + layout->signals + group;
      if (word < before || (word - before) % 8 != 0 || !is_taken_gil(read, *layout, word - before)) continue;
      const std::uint64_t gil = word - before;
      const auto state = read(gil + kHolder, 8);
      if (!state || *state == 0 || *state % 8 != 0) continue;
      if (const std::int32_t tid = find_thread_of_state(read, *thread, *state); tid != 0) return GilWait{gil, tid};
    }
  }
  return std::nullopt;
}

bool is_python_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

bool is_data_of_python(const std::vector<Mapping>& mappings, std::uint64_t address) {
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Mapping& mapping = mappings[i];
    if (address < mapping.start || address >= mapping.end) continue;
    // The zeroed part of the module's data (.bss) may be an anonymous mapping directly after the file's mapping.
    const bool follows =
        i > 0 && mapping.path.empty() && mappings[i - 1].end == mapping.start && is_python_file(mappings[i - 1].path);
    return mapping.writable && !mapping.shared && (follows || is_python_file(mapping.path));
  }
  return false;
}

}  // namespace forksight::proc
