#include "inspect/lock_references.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace forksight::inspect {
namespace {

constexpr std::size_t kMostReferences = 3;      // as many as a report names
constexpr std::size_t kMostThreadsRead = 1000;  // a hostile process must not cost more time than a large honest one
constexpr std::uint64_t kMostStackBytes = 256U << 10U;
constexpr std::uint64_t kWaitBytes = 4096;  // what the functions of a wait use of the stack of their thread

struct FamilyName {
  std::string_view part;
  LockFamily family;
};
// The order matters: the name of a function of parking_lot has names of the standard library as a part.
constexpr FamilyName kFamilyNames[] = {
    {"parking_lot::raw_rwlock::RawRwLock::lock_", LockFamily::kParkingLotRwlock},
    {"parking_lot::raw_rwlock::RawRwLock::wait_for_readers", LockFamily::kParkingLotRwlock},
    {"parking_lot::raw_mutex::RawMutex::lock_slow", LockFamily::kParkingLotMutex},
    {"Mutex::lock_contended", LockFamily::kRustMutex},
    {"RwLock::read_contended", LockFamily::kRustRwlockRead},
    {"RwLock::write_contended", LockFamily::kRustRwlockWrite},
};

bool is_abseil_lock(std::string_view function) {
  if (!function.starts_with("absl::")) return false;
  for (const std::string_view part :
       {"::Mutex::Lock", "::Mutex::ReaderLock", "::Mutex::WriterLock", "::Mutex::Block"}) {
    if (function.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// True for functions by which a lock is implemented. Names of trait implementations may begin with "<".
bool is_of_lock_library(std::string_view function) {
  for (const std::string_view prefix : {"std::", "core::", "parking_lot", "lock_api::", "absl::", "<", "syscall"}) {
    if (function.starts_with(prefix)) return true;
  }
  return false;
}

std::string_view without_parameters(std::string_view function) { return function.substr(0, function.find('(')); }

// The lock that the innermost functions of the stack take. A thread that waits for a condition variable waits for no
// lock.
LockFamily find_family(const model::Stack& stack) {
  for (const model::Frame& frame : stack.frames) {
    const std::string_view function = without_parameters(frame.function);
    if (const LockFamily family = family_of_function(function); family != LockFamily::kNone) return family;
    if (function.find("Condvar::") != std::string_view::npos || function.find("CondVar::") != std::string_view::npos ||
        !is_of_lock_library(function)) {
      break;
    }
  }
  return LockFamily::kNone;
}

bool is_taking_lock(const model::Stack& stack) {
  return std::ranges::any_of(stack.frames, [](const model::Frame& frame) {
    return family_of_function(without_parameters(frame.function)) != LockFamily::kNone;
  });
}

std::vector<std::uint64_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  return words;
}

// The words that the innermost functions of the thread have on its stack.
std::vector<std::uint64_t> words_of_wait(const image::Image& image, const image::Thread& thread) {
  if (!thread.stack.empty()) {
    return words_of({thread.stack.begin(), thread.stack.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                                      thread.stack.size(), kWaitBytes))});
  }
  return words_of(image.memory->bytes(*(*thread.registers)[symbols::kRsp], kWaitBytes));
}

// The only one of `candidates` for which `is_it` holds.
template <class Condition>
std::optional<std::uint64_t> find_only_word(const std::vector<std::uint64_t>& candidates, const Condition& is_it) {
  std::optional<std::uint64_t> found;
  for (const std::uint64_t word : candidates) {
    if (word == found || !is_it(word)) continue;
    if (found) return std::nullopt;
    found = word;
  }
  return found;
}

// A thread that waits for an absl::Mutex sleeps on a word of its own, which is in its ThreadIdentity. The mutex has one
// word: the address of the ThreadIdentity of the last waiter, which is a multiple of 256, and flags.
std::optional<std::uint64_t> find_abseil_mutex(const image::Image& image, const image::Thread& thread,
                                               const StuckCall& call) {
  constexpr std::uint64_t kFlags = 0xff;
  constexpr std::uint64_t kReader = 1;
  constexpr std::uint64_t kWait = 4;
  constexpr std::uint64_t kWriter = 8;
  return find_only_word(words_of_wait(image, thread), [&](std::uint64_t word) {
    if (word % sizeof(std::uint64_t) != 0 || word == 0) return false;
    const auto state = image.memory->value<std::uint64_t>(word);
    return state && (*state & ~kFlags) == (call.word & ~kFlags) && (*state & kWait) != 0 &&
           (*state & (kWriter | kReader)) != 0;
  });
}

// A thread that waits for a lock of parking_lot sleeps on a word of its own, which is in its ThreadData. The ThreadData
// has the address of the lock, too. For a writer that waits until the readers have gone, it is the address plus 1.
std::optional<std::uint64_t> find_parking_lot(const image::Image& image, const image::Thread& thread,
                                              const StuckCall& call, bool is_rwlock) {
  constexpr std::uint64_t kNear = 64;
  constexpr std::uint64_t kRwlockParked = 3;  // bits that say that threads wait
  const std::uint64_t start = (call.word & ~std::uint64_t{7}) - kNear;
  const std::vector<std::uint64_t> on_stack = words_of_wait(image, thread);
  const auto found = find_only_word(words_of(image.memory->bytes(start, 2 * kNear)), [&](std::uint64_t word) {
    if (word == 0 || (word >= start && word < start + 2 * kNear)) return false;
    if (is_rwlock) {
      const std::uint64_t lock = word & ~std::uint64_t{1};
      if (lock % sizeof(std::uint64_t) != 0 || std::ranges::find(on_stack, lock) == on_stack.end()) return false;
      const std::uint64_t state = image.memory->value<std::uint64_t>(lock).value_or(0);
      return (state & ~kRwlockParked) != 0 && (state & kRwlockParked) != 0;
    }
    constexpr std::uint8_t kLockedAndParked = 3;
    return std::ranges::find(on_stack, word) != on_stack.end() &&
           image.memory->value<std::uint8_t>(word) == kLockedAndParked;
  });
  return found && is_rwlock ? std::optional(*found & ~std::uint64_t{1}) : found;
}

class ReferenceSearch {
 public:
  ReferenceSearch(Scene& scene, std::size_t child, const model::Fork& fork, std::uint64_t lock)
      : scene_(scene),
        child_(child),
        image_(scene.subjects[child].image),
        parent_(scene.subjects[fork.process].image),
        is_parent_absent_(scene.subjects[fork.process].is_absent),
        parent_id_(fork.process),
        lock_(lock),
        any_word_([this](std::uint64_t address) { return image_.memory->value<std::uint64_t>(address); }) {}

  // For a thread that the child has.
  std::optional<model::Stack> find_own(const image::Thread& thread) {
    if (thread.has_ended || !thread.registers || !(*thread.registers)[symbols::kRsp]) return std::nullopt;
    const std::uint64_t sp = *(*thread.registers)[symbols::kRsp];
    const std::vector<std::byte> bytes = thread.stack.empty() ? read(sp, end_of_mapping(sp)) : thread.stack;
    if (!may_refer(*thread.registers, bytes)) return std::nullopt;
    return judge(symbols().find_reference(*thread.registers, {sp, bytes, &any_word_}, lock_),
                 find_awaited_lock(image_, thread, scene_.facts_of(child_, thread.tid).call));
  }

  // For a thread that the fork left behind.
  std::optional<model::Stack> find_lost(const model::Thread& thread) {
    if (const auto now = find_unmoved(thread)) {
      if (!may_refer(*now->thread->registers, now->bytes)) return std::nullopt;
      return judge(symbols().find_reference(*now->thread->registers, {now->start, now->bytes, &any_word_}, lock_),
                   find_awaited_lock(parent_, *now->thread, scene_.facts_of(parent_id_, thread.tid).call));
    }
    const std::uint64_t end = end_of_stack(thread);
    if (end == 0) return std::nullopt;
    const proc::Mapping* const mapping = image_.mapping_of(end - 1);
    if (mapping == nullptr) return std::nullopt;
    const std::uint64_t start = std::max(mapping->start, end - std::min(end, kMostStackBytes));
    const std::vector<std::byte> bytes = read(start, end);
    if (!may_refer({}, bytes)) return std::nullopt;
    return judge(symbols().find_frozen_reference({start, bytes, nullptr}, lock_), std::nullopt);
  }

 private:
  struct Unmoved {
    const image::Thread* thread;
    std::uint64_t start;
    std::vector<std::byte> bytes;
  };

  symbols::Symbolizer& symbols() { return scene_.stacks_of(child_).symbols(); }

  std::vector<std::byte> read(std::uint64_t start, std::uint64_t end) const {
    return image_.memory->bytes(start, end > start ? std::min(end - start, kMostStackBytes) : 0);
  }

  std::uint64_t end_of_mapping(std::uint64_t address) const {
    const proc::Mapping* const mapping = image_.mapping_of(address);
    return mapping == nullptr ? 0 : mapping->end;
  }

  // The thread of the parent, if its stack is as it was at the fork. Then its registers are taken for those that it had
  // at the fork.
  std::optional<Unmoved> find_unmoved(const model::Thread& thread) const {
    if (is_parent_absent_ || thread.tid == 0) return std::nullopt;
    const auto now = std::ranges::find(parent_.threads, thread.tid, &image::Thread::tid);
    if (now == parent_.threads.end() || now->has_ended || !now->registers) return std::nullopt;
    if (!(*now->registers)[symbols::kRsp] || !(*now->registers)[symbols::kReturnAddress]) return std::nullopt;
    const std::uint64_t sp = *(*now->registers)[symbols::kRsp];
    const std::uint64_t end = thread.pointer > sp ? thread.pointer : end_of_mapping(sp);
    std::vector<std::byte> bytes = read(sp, end);
    const std::vector<std::byte> parents = now->stack.empty() ? parent_.memory->bytes(sp, bytes.size()) : now->stack;
    const std::size_t size = std::min(bytes.size(), parents.size());
    if (size == 0 || !std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size), parents.begin()))
      return std::nullopt;
    return Unmoved{&*now, sp, std::move(bytes)};
  }

  // The stack of a thread that glibc made ends below its struct pthread. The first thread's stack is a mapping of its
  // own. 0: not known.
  std::uint64_t end_of_stack(const model::Thread& thread) const {
    if (!thread.is_main) return thread.pointer;
    const auto first = std::ranges::find(image_.mappings, "[stack]", &proc::Mapping::path);
    return first != image_.mappings.end() ? first->end : 0;
  }

  // False: no frame of the stack can refer to the lock.
  bool may_refer(const symbols::Registers& registers, const std::vector<std::byte>& bytes) const {
    const std::vector<std::uint64_t> words = words_of(bytes);
    return std::ranges::find(words, lock_) != words.end() ||
           std::ranges::find(registers, std::optional(lock_)) != registers.end();
  }

  // The stack from the frame that refers to the lock outwards, unless the thread waits for the lock itself. A thread
  // that takes a lock, and of which it is not known which one, may wait for this one.
  std::optional<model::Stack> judge(std::optional<symbols::StackReference> found,
                                    std::optional<std::uint64_t> awaited) {
    if (!found || awaited == lock_) return std::nullopt;
    if (!awaited && (is_taking_lock(found->inner) || find_family(found->stack) != LockFamily::kNone))
      return std::nullopt;
    return std::move(found->stack);
  }

  Scene& scene_;
  std::size_t child_;
  const image::Image& image_;
  const image::Image& parent_;
  bool is_parent_absent_;
  std::size_t parent_id_;
  std::uint64_t lock_;
  symbols::WordReader any_word_;
};

}  // namespace

LockFamily family_of_function(std::string_view function) {
  for (const FamilyName& known : kFamilyNames) {
    if (function.find(known.part) != std::string_view::npos) return known.family;
  }
  return is_abseil_lock(function) ? LockFamily::kAbseil : LockFamily::kNone;
}

std::optional<std::uint64_t> find_awaited_lock(const image::Image& image, const image::Thread& thread,
                                               const StuckCall& call) {
  if (call.word == 0 || !thread.registers || !(*thread.registers)[symbols::kRsp]) return std::nullopt;
  constexpr std::uint64_t kWord = sizeof(std::uint32_t);
  const LockFamily family = find_family(call.stack);
  std::uint64_t lock = call.word;
  switch (family) {
    case LockFamily::kNone: return std::nullopt;
    case LockFamily::kAbseil: return find_abseil_mutex(image, thread, call);
    case LockFamily::kParkingLotMutex: return find_parking_lot(image, thread, call, false);
    case LockFamily::kParkingLotRwlock: return find_parking_lot(image, thread, call, true);
    case LockFamily::kRustMutex:
    case LockFamily::kRustRwlockRead: break;
    case LockFamily::kRustRwlockWrite: lock -= kWord; break;  // a writer sleeps on the second word
  }
  // The upper two bits of a RwLock say only that threads wait.
  const std::uint32_t held = family == LockFamily::kRustMutex ? ~std::uint32_t{0} : (std::uint32_t{1} << 30U) - 1;
  const auto state = image.memory->value<std::uint32_t>(lock);
  return state && (*state & held) != 0 ? std::optional(lock) : std::nullopt;
}

void add_lock_references(Scene& scene, std::size_t child, const image::Thread& waiting, const model::Fork& fork,
                         model::Touch& touch) {
  const image::Image& image = scene.subjects[child].image;
  const auto lock = find_awaited_lock(image, waiting, scene.facts_of(child, waiting.tid).call);
  if (!lock) return;
  ReferenceSearch search(scene, child, fork, *lock);
  const auto note = [&](model::ThreadId id, bool is_own, std::optional<model::Stack> stack) {
    if (!stack) return;
    ++touch.lock_referrers;
    if (touch.lock_references.size() < kMostReferences)
      touch.lock_references.push_back({id, is_own, std::move(*stack)});
  };
  for (const image::Thread& thread : image.threads) {
    if (thread.tid != waiting.tid) note(scene.facts_of(child, thread.tid).id, true, search.find_own(thread));
  }
  const std::size_t count = std::min(fork.lost_threads.size(), kMostThreadsRead);
  for (std::size_t i = 0; i < count; ++i) {
    note(fork.lost_threads[i], false, search.find_lost(scene.model.threads[fork.lost_threads[i]]));
  }
}

}  // namespace forksight::inspect
