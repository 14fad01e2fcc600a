#include "inspect/core_waits.hpp"

#include <linux/futex.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "proc/futex_word.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/describe_wait.hpp"
#include "watch/futex_lookup.hpp"
#include "watch/stuck_threads.hpp"

namespace forksight::inspect {
namespace {

using proc::WaitClass;
using watch::WordMapping;

proc::ThreadSample sample_of(const image::Thread& thread) {
  proc::ThreadSample sample;
  sample.tid = thread.tid;
  sample.status.name = thread.name;
  sample.status.state = thread.has_ended ? 'Z' : thread.state;
  if (thread.call) sample.call = *thread.call;
  return sample;
}

bool is_futex(const proc::WaitTarget& target) {
  return target.kind == WaitClass::kPrivateFutex || target.kind == WaitClass::kPlainFutex;
}

// The paths of the program and of its libraries.
using Paths = std::unordered_set<std::string_view>;

// A core does not show for every mapping whether it is shared. Anonymous memory, the heap and stacks are private. The
// data of a program or library is also private. The data is mapped from a file, but the kernel copies a page when the
// process writes to the page.
WordMapping kind_of_mapping(const image::Image& core, const Paths& modules, std::uint64_t word) {
  const proc::Mapping* const mapping = core.mapping_of(word);
  if (mapping == nullptr) return WordMapping::kUnknown;
  if (mapping->shared) return WordMapping::kShared;
  if (!mapping->writable) return WordMapping::kUnknown;
  const bool is_private = mapping->path.empty() || mapping->path.starts_with('[') || modules.contains(mapping->path);
  return is_private ? WordMapping::kPrivate : WordMapping::kUnknown;
}

std::optional<std::uint64_t> read_word(const image::Image& core, std::uint64_t address, std::size_t size) {
  if (size == sizeof(std::uint64_t)) return core.memory->value<std::uint64_t>(address);
  const auto value = core.memory->value<std::uint32_t>(address);
  return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

// Finds threads by the thread ids in the memory of the process. An index is needed because a core may have very many
// threads, and each wait needs several look-ups.
class Numbers {
 public:
  explicit Numbers(const image::Image& core) {
    by_own_.reserve(core.threads.size());
    tids_.reserve(core.threads.size());
    for (const image::Thread& thread : core.threads) {
      by_own_.push_back({image::own_number(thread), thread.tid});
      tids_.push_back(thread.tid);
    }
    std::ranges::stable_sort(by_own_, {}, &Number::own);
    std::ranges::sort(tids_);
  }
  bool has_own(std::int32_t own) const { return find(own) != nullptr; }
  bool has(std::int32_t tid) const { return std::ranges::binary_search(tids_, tid); }
  // Returns `own` if no thread has that id.
  std::int32_t tid_of(std::int32_t own) const {
    const Number* const found = find(own);
    return found == nullptr ? own : found->tid;
  }

 private:
  struct Number {
    std::int32_t own;
    std::int32_t tid;
  };
  // Returns the first thread that has this id; null if none has.
  const Number* find(std::int32_t own) const {
    const auto at = std::ranges::lower_bound(by_own_, own, {}, &Number::own);
    return own == 0 || at == by_own_.end() || at->own != own ? nullptr : &*at;
  }

  std::vector<Number> by_own_;
  std::vector<std::int32_t> tids_;
};

watch::WaitFacts look_up(const image::Image& core, const Paths& modules, const Numbers& numbers,
                         const proc::ThreadSample& thread) {
  watch::WaitFacts facts;
  const proc::WaitTarget target = proc::classify(thread);
  if (!is_futex(target)) return facts;
  const bool is_private = target.kind == WaitClass::kPrivateFutex;
  facts.mapping = is_private ? WordMapping::kPrivate : kind_of_mapping(core, modules, target.word);
  const auto read = [&](std::uint64_t at, std::size_t size) { return read_word(core, at, size); };
  const auto lives_here = [&](std::int32_t own) { return numbers.has_own(own); };
  // The owner of a lock in shared memory may be a thread of another process. A core does not show which other processes
  // existed. So every thread id counts as the id of a living thread.
  const auto may_live = [](std::int32_t) { return true; };
  const bool is_own = facts.mapping == WordMapping::kPrivate;
  facts.word = proc::identify_word(thread.call, core.libc.version, read, lives_here,
                                   is_own ? proc::HasTask(lives_here) : may_live);
  // See FutexLookup::look_up().
  const bool may_be_other = core.has_two_numberings && facts.mapping != WordMapping::kShared && facts.word.owner != 0 &&
                            !facts.word.owner_is_gone;
  if (may_be_other) facts.word = proc::FutexWord{};
  facts.word.owner = numbers.tid_of(facts.word.owner);
  if (const auto value = core.memory->value<std::uint32_t>(target.word); target.priority_inherit && value) {
    facts.pi_owner = numbers.tid_of(static_cast<std::int32_t>(*value & FUTEX_TID_MASK));
  }
  if (is_own) {
    watch::name_wakers(core.pid, target, facts);
  } else if (const proc::Mapping* const mapping = core.mapping_of(target.word); mapping != nullptr) {
    facts.object = mapping->path;
  }
  return facts;
}

// Applies the rules of watch/proof.hpp that need only memory and registers.
bool is_blocked_forever(const Numbers& numbers, const proc::ThreadSample& thread, const watch::WaitFacts& facts) {
  const proc::WaitTarget target = proc::classify(thread);
  if (target.kind == WaitClass::kEnded) return true;
  if (!is_futex(target) || facts.mapping != WordMapping::kPrivate) return false;
  // If a thread of another process owns a priority-inheritance lock, the end of that thread wakes the waiter.
  return !target.priority_inherit || (facts.pi_owner && numbers.has(*facts.pi_owner));
}

}  // namespace

CoreWaits find_core_waits(const image::Image& core) {
  CoreWaits found;
  std::vector<proc::ThreadSample> threads;
  std::vector<watch::WaitFacts> facts;
  found.all_for_good = true;
  auto numbers = std::make_unique<Numbers>(core);
  Paths modules;
  for (const symbols::Module& module : core.modules) modules.insert(module.path);
  threads.reserve(core.threads.size());
  facts.reserve(core.threads.size());
  for (const image::Thread& thread : core.threads) {
    threads.push_back(sample_of(thread));
    facts.push_back(look_up(core, modules, *numbers, threads.back()));
    found.all_for_good = found.all_for_good && is_blocked_forever(*numbers, threads.back(), facts.back());
  }
  const std::vector<bool> in_ring = watch::find_rings(core.pid, threads, facts);
  // With very many threads, the memory of these two is needed for the waits.
  numbers.reset();
  std::vector<proc::ThreadSample>().swap(threads);
  found.waits.reserve(facts.size());
  for (std::size_t index = 0; index < facts.size(); ++index) {
    const proc::ThreadSample thread = sample_of(core.threads[index]);
    found.waits.push_back(watch::describe_wait(thread, &facts[index]));
    found.waits.back().is_stuck = !thread.ended() && (found.all_for_good || in_ring[index]);
  }
  return found;
}

}  // namespace forksight::inspect
