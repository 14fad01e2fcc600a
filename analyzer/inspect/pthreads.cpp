#include "inspect/pthreads.hpp"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "forksight/abi/thread.hpp"

namespace forksight::inspect {
namespace {

constexpr std::uint64_t kFirstOffset = 0x80;
constexpr std::uint64_t kLastOffset = 0x900;

bool is_at(const image::Image& image, std::uint64_t offset) {
  bool any = false;
  for (const image::Thread& thread : image.threads) {
    if (thread.fs_base == 0) continue;
    if (image.memory->value<std::int32_t>(thread.fs_base + offset) != own_number(thread)) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::optional<std::uint64_t> find_tid_offset(const image::Image& image) {
  const abi::ThreadLayout* const layout = abi::thread_layout(image.libc.version);
  if (layout != nullptr && is_at(image, layout->tid)) return layout->tid;
  for (std::uint64_t offset = kFirstOffset; offset < kLastOffset; offset += 8) {
    if (is_at(image, offset)) return offset;
  }
  return std::nullopt;
}

void find_own_numbers(image::Image& core, bool is_forked) {
  const abi::ThreadLayout* const layout = abi::thread_layout(core.libc.version);
  if (layout == nullptr || (core.threads.size() < 2 && !is_forked)) return;
  std::vector<std::int32_t> numbers;
  std::unordered_set<std::int32_t> known;
  for (const image::Thread& thread : core.threads) {
    for (const std::uint64_t self : {thread.fs_base, thread.fs_base + abi::kSelfInThread}) {
      if (thread.fs_base == 0 || core.memory->value<std::uint64_t>(self) != thread.fs_base) return;
    }
    const auto own = core.memory->value<std::int32_t>(thread.fs_base + layout->tid);
    if (!own || *own <= 0 || *own == thread.tid || !known.insert(*own).second) return;
    numbers.push_back(*own);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) core.threads[i].own_tid = numbers[i];
}

bool may_be_cancelled_anywhere(const image::Image& image, const image::Thread& thread) {
  const abi::ThreadLayout* const layout = abi::thread_layout(image.libc.version);
  if (layout == nullptr || thread.fs_base == 0 || abi::kWithoutCancelFlags.have(image.libc.version)) return false;
  const auto flags = image.memory->value<std::uint32_t>(thread.fs_base + layout->cancel_handling).value_or(0);
  return (flags & (abi::kCancelAsynchronous | abi::kCancelDisabled)) == abi::kCancelAsynchronous;
}

std::int32_t find_forking_thread(const image::Image& child, std::uint64_t pointer, const image::Image& parent) {
  auto offset = find_tid_offset(child);
  const abi::ThreadLayout* const layout = abi::thread_layout(child.libc.version);
  // If clone() made the child without libc, find_tid_offset() finds no offset, because the child's memory still has the
  // tid of the parent's thread.
  if (!offset && layout != nullptr) offset = layout->tid;
  if (pointer == 0 || !offset) return 0;
  const auto tid = parent.memory->value<std::int32_t>(pointer + *offset);
  const image::Thread* const thread = tid ? parent.find_own(*tid) : nullptr;
  return thread != nullptr ? thread->tid : 0;
}

void find_pointer_by_child(image::Image& process, const image::Image& child) {
  const abi::ThreadLayout* const layout = abi::thread_layout(process.libc.version);
  const auto own = std::ranges::find(process.threads, process.pid, &image::Thread::tid);
  const auto copy = std::ranges::find(child.threads, child.pid, &image::Thread::tid);
  if (layout == nullptr || own == process.threads.end() || copy == child.threads.end()) return;
  if (own->fs_base != 0 || copy->fs_base == 0 || !process.memory) return;
  const auto tid = process.memory->value<std::int32_t>(copy->fs_base + layout->tid);
  if (tid == own_number(*own)) own->fs_base = copy->fs_base;
}

bool is_same_layout(const image::Image& one, const image::Image& other) {
  if (one.exe.empty() || one.exe != other.exe || one.modules.empty() || other.modules.empty()) return false;
  // More than half of the modules must be equal. The others may differ, because both processes may have loaded
  // libraries since the fork.
  const auto has = [&](const symbols::Module& module) {
    return std::ranges::any_of(other.modules, [&](const symbols::Module& candidate) {
      return candidate.bias == module.bias && candidate.path == module.path;
    });
  };
  const auto count = std::ranges::count_if(one.modules, has);
  return count * 2 > static_cast<std::ptrdiff_t>(std::min(one.modules.size(), other.modules.size()));
}

}  // namespace forksight::inspect
