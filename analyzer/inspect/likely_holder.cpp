#include "inspect/likely_holder.hpp"

#include <algorithm>
#include <utility>

namespace forksight::inspect {
namespace {

using Stand = symbols::LockStand;

// How much of a lost thread's stack is read, from its outer end on. The end of the first thread's stack has the
// environment and the arguments of the program, which may be long.
constexpr std::uint64_t kMostBytes = 1U << 20U;

class Search {
 public:
  Search(Scene& scene, std::size_t child)
      : image_(scene.subjects[child].image),
        stacks_(scene.stacks_of(child)),
        any_word_([this](std::uint64_t address) { return image_.memory->value<std::uint64_t>(address); }) {}

  std::optional<symbols::AwaitedLock> find_awaited(const image::Thread& thread) {
    if (!thread.registers || thread.has_ended || !(*thread.registers)[symbols::kRsp]) return std::nullopt;
    auto lock = stacks_.symbols().find_awaited_lock(*thread.registers, stack_of(thread));
    return lock && is_taken(*lock) ? lock : std::nullopt;
  }

  // The stand of a thread that the child has.
  Stand find_own(const image::Thread& thread, std::uint64_t lock) {
    if (thread.has_ended) return {Stand::Kind::kNone, {}};
    if (!thread.registers || !(*thread.registers)[symbols::kRsp]) return {};
    return stacks_.symbols().find_lock_stand(*thread.registers, stack_of(thread), lock);
  }

  Stand find_lost(const model::Thread& thread, std::uint64_t lock) {
    const auto end = end_of_stack(thread);
    const proc::Mapping* const mapping = end ? image_.mapping_of(*end - 1) : nullptr;
    if (mapping == nullptr) return {};
    const std::uint64_t start = std::max(mapping->start, *end - std::min(*end, kMostBytes));
    const std::vector<std::byte> bytes = image_.memory->bytes(start, *end - start);
    return stacks_.symbols().find_frozen_lock_stand({start, bytes, &any_word_}, lock);
  }

 private:
  // All words come from the image's memory, except those that were read while the thread was stopped.
  symbols::StackBytes stack_of(const image::Thread& thread) const {
    return {*(*thread.registers)[symbols::kRsp], thread.stack, &any_word_};
  }

  bool is_taken(const symbols::AwaitedLock& lock) const {
    if (lock.word_bytes == 1) return image_.memory->value<std::uint8_t>(lock.address).value_or(0) != 0;
    return image_.memory->value<std::uint32_t>(lock.address).value_or(0) != 0;
  }

  // The stack of a thread that glibc made ends below its struct pthread. The first thread's stack is a mapping of its
  // own.
  std::optional<std::uint64_t> end_of_stack(const model::Thread& thread) const {
    if (!thread.is_main) return thread.pointer != 0 ? std::optional(thread.pointer) : std::nullopt;
    const auto first = std::ranges::find(image_.mappings, "[stack]", &proc::Mapping::path);
    return first != image_.mappings.end() ? std::optional(first->end) : std::nullopt;
  }

  const image::Image& image_;
  image::Stacks& stacks_;
  symbols::WordReader any_word_;
};

}  // namespace

std::optional<model::LikelyHolder> find_likely_holder(Scene& scene, std::size_t child, const image::Thread& waiting,
                                                      const model::Fork& fork) {
  Search search(scene, child);
  const auto lock = search.find_awaited(waiting);
  if (!lock) return std::nullopt;
  model::LikelyHolder holder;
  holder.lock_type = lock->type;
  holder.lock = lock->address;
  std::size_t holders = 0;
  bool is_known = !fork.may_have_lost_more && fork.unknown_threads == 0;
  const auto note = [&](model::ThreadId id, bool is_own, Stand stand) {
    if (stand.kind == Stand::Kind::kUnknown) is_known = false;
    if (stand.kind != Stand::Kind::kHolds) return;
    ++holders;
    holder.thread = id;
    holder.is_own = is_own;
    holder.inside = std::move(stand.stack);
  };
  for (const image::Thread& thread : scene.subjects[child].image.threads) {
    note(scene.facts_of(child, thread.tid).id, true, search.find_own(thread, lock->address));
  }
  for (const model::ThreadId id : fork.lost_threads) {
    note(id, false, search.find_lost(scene.model.threads[id], lock->address));
  }
  if (holders != 1 || !is_known) return std::nullopt;
  scene.name_data(child, lock->address, holder.lock_name, holder.lock_module);
  return holder;
}

}  // namespace forksight::inspect
