#include "inspect/core_waits.hpp"

#include <linux/futex.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

// A core does not show for every mapping whether it is shared. Anonymous memory, the heap and stacks are private. So is
// the data of a program or library, which is mapped from its own file: the kernel copies a page when it is written.
WordMapping kind_of_mapping(const image::Image& core, std::uint64_t word) {
  const proc::Mapping* const mapping = core.mapping_of(word);
  if (mapping == nullptr) return WordMapping::kUnknown;
  if (mapping->shared) return WordMapping::kShared;
  if (!mapping->writable) return WordMapping::kUnknown;
  const bool is_private = mapping->path.empty() || mapping->path.starts_with('[') ||
                          std::ranges::find(core.modules, mapping->path, &symbols::Module::path) != core.modules.end();
  return is_private ? WordMapping::kPrivate : WordMapping::kUnknown;
}

std::optional<std::uint64_t> read_word(const image::Image& core, std::uint64_t address, std::size_t size) {
  if (size == sizeof(std::uint64_t)) return core.memory->value<std::uint64_t>(address);
  const auto value = core.memory->value<std::uint32_t>(address);
  return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

watch::WaitFacts look_up(const image::Image& core, const proc::ThreadSample& thread) {
  watch::WaitFacts facts;
  const proc::WaitTarget target = proc::classify(thread);
  if (!is_futex(target)) return facts;
  const bool is_private = target.kind == WaitClass::kPrivateFutex;
  facts.mapping = is_private ? WordMapping::kPrivate : kind_of_mapping(core, target.word);
  const auto read = [&](std::uint64_t at, std::size_t size) { return read_word(core, at, size); };
  const auto lives_here = [&](std::int32_t own) { return core.find_own(own) != nullptr; };
  // The owner of a lock that may be shared may be a thread of another process. A core does not show which processes
  // there were, so any owner may be alive.
  const auto may_live = [](std::int32_t) { return true; };
  const bool is_own = facts.mapping == WordMapping::kPrivate;
  facts.word = proc::identify_word(thread.call, core.libc.version, read, lives_here,
                                   is_own ? proc::HasTask(lives_here) : may_live);
  facts.word.owner = core.tid_of(facts.word.owner);
  if (const auto value = core.memory->value<std::uint32_t>(target.word); target.priority_inherit && value) {
    facts.pi_owner = core.tid_of(static_cast<std::int32_t>(*value & FUTEX_TID_MASK));
  }
  if (is_own) {
    watch::name_wakers(core.pid, target, facts);
  } else if (const proc::Mapping* const mapping = core.mapping_of(target.word); mapping != nullptr) {
    facts.object = mapping->path;
  }
  return facts;
}

// The rules of watch/proof.hpp, as far as memory and registers suffice for them.
bool is_asleep_for_good(const image::Image& core, const proc::ThreadSample& thread, const watch::WaitFacts& facts) {
  const proc::WaitTarget target = proc::classify(thread);
  if (target.kind == WaitClass::kEnded) return true;
  if (!is_futex(target) || facts.mapping != WordMapping::kPrivate) return false;
  // If the owner of a lock with priority inheritance is in another process, the end of the owner wakes the waiter.
  return !target.priority_inherit ||
         std::ranges::any_of(core.threads, [&](const image::Thread& other) { return facts.pi_owner == other.tid; });
}

}  // namespace

CoreWaits find_core_waits(const image::Image& core) {
  CoreWaits found;
  std::vector<proc::ThreadSample> threads;
  std::vector<watch::WaitFacts> facts;
  found.all_for_good = true;
  for (const image::Thread& thread : core.threads) {
    threads.push_back(sample_of(thread));
    facts.push_back(look_up(core, threads.back()));
    found.all_for_good = found.all_for_good && is_asleep_for_good(core, threads.back(), facts.back());
  }
  const std::vector<bool> in_ring = watch::find_rings(core.pid, threads, facts);
  for (std::size_t index = 0; index < threads.size(); ++index) {
    found.waits.push_back(watch::describe_wait(threads[index], &facts[index]));
    found.waits.back().is_stuck = !threads[index].ended() && (found.all_for_good || in_ring[index]);
  }
  return found;
}

}  // namespace forksight::inspect
