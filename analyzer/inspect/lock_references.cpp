#include "inspect/lock_references.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "inspect/lost_pthreads.hpp"
#include "symbols/stack_references.hpp"

namespace forksight::inspect {
namespace {

constexpr std::size_t kMostReferences = 3;      // as many as a report names
constexpr std::size_t kMostThreadsRead = 1000;  // a hostile process must not cost more time than a large honest one
constexpr std::uint64_t kMostStackBytes = 256U << 10U;
constexpr std::uint64_t kWaitBytes = 4096;  // the part of a waiting thread's stack that its innermost functions use

// An absl::Mutex has one word. The word contains flags. If threads wait, the word also contains the address of the last
// waiter's PerThreadSynch, which is abseil's record of that thread.
constexpr std::uint64_t kAbseilFlags = 0xff;
constexpr std::uint64_t kAbseilReader = 1;
constexpr std::uint64_t kAbseilWait = 4;
constexpr std::uint64_t kAbseilWriter = 8;

struct FamilyName {
  std::string_view part;
  LockFamily family;
};
// The first entry whose `part` occurs in the name of a function decides which family the function belongs to.
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

// True for functions that implement locks. Names of Rust's trait implementations begin with "<" or "_<".
bool is_of_lock_library(std::string_view function) {
  for (const std::string_view prefix :
       {"std::", "core::", "parking_lot", "lock_api::", "absl::", "AbslInternal", "<", "_<", "syscall"}) {
    if (function.starts_with(prefix)) return true;
  }
  return false;
}

std::string_view without_parameters(std::string_view function) { return function.substr(0, function.find('(')); }

// True if the mutex belongs to a ReentrantLock, the lock of Rust's standard output.
bool is_in_reentrant_lock(const model::Stack& stack) {
  constexpr std::size_t kInnermost = 5;
  const std::size_t count = std::min(stack.frames.size(), kInnermost);
  return std::any_of(stack.frames.begin(), stack.frames.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const model::Frame& frame) {
                       return without_parameters(frame.function).find("ReentrantLock") != std::string_view::npos;
                     });
}

// Returns the family of the lock that the innermost functions of the stack take. Returns kNone for a thread that waits
// for a condition variable.
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

// True if the thread may wait for a lock. Called if it is not known whether the thread waits for a lock, and for which
// one. `found`: the frame of the thread's stack that refers to the lock (the referring frame), and the other frames.
// The inner frames are the frames of the functions that the referring frame has called, and of the functions that these
// have called.
//   A frozen stack is the copy of a lost thread's stack in the memory of the child. The inner frames of a frozen stack
//   may be missing. Then the name of the function that the referring frame called last shows whether this function
//   takes a lock. If there are inner frames, the functions that they call probably take other locks. So such a call
//   counts only if its function belongs to a family of locks (LockFamily), because threads wait in such a function.
bool is_taking_lock(const symbols::StackReference& found) {
  const std::string last_call(without_parameters(found.last_call));
  if (found.inner.frames.empty() && symbols::mentions_taking_lock(last_call)) return true;
  if (family_of_function(last_call) != LockFamily::kNone || find_family(found.stack) != LockFamily::kNone) return true;
  return std::ranges::any_of(found.inner.frames, [](const model::Frame& frame) {
    return family_of_function(without_parameters(frame.function)) != LockFamily::kNone;
  });
}

std::vector<std::uint64_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  return words;
}

// Returns the words that the innermost functions of the thread have on its stack.
std::vector<std::uint64_t> words_of_wait(const image::Image& image, const image::Thread& thread) {
  if (!thread.stack.empty()) {
    return words_of({thread.stack.begin(), thread.stack.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                                      thread.stack.size(), kWaitBytes))});
  }
  return words_of(image.memory->bytes(*(*thread.registers)[symbols::kRsp], kWaitBytes));
}

// Returns the candidate for which `is_it` is true. nullopt if `is_it` is true for no candidate, or for several
// different ones.
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

// Finds the absl::Mutex for which the thread waits. The thread sleeps on a word in its own ThreadIdentity. A
// ThreadIdentity begins with a PerThreadSynch. The word of the mutex contains flags and the address of the last
// waiter's ThreadIdentity. This address is a multiple of 256.
std::optional<std::uint64_t> find_abseil_mutex(const image::Image& image, const image::Thread& thread,
                                               const StuckCall& call) {
  return find_only_word(words_of_wait(image, thread), [&](std::uint64_t word) {
    if (word % sizeof(std::uint64_t) != 0 || word == 0) return false;
    const auto state = image.memory->value<std::uint64_t>(word);
    return state && (*state & ~kAbseilFlags) == (call.word & ~kAbseilFlags) && (*state & kAbseilWait) != 0;
  });
}

// True if a thread with this stack waits for the absl::Mutex. The waiters of a mutex form a ring. Each waiter is a
// PerThreadSynch. The first word of a PerThreadSynch is the address of the next waiter. Another word is the address of
// a variable on the stack of the waiting thread.
bool waits_for_abseil_mutex(const image::Image& image, std::uint64_t mutex, std::uint64_t start, std::uint64_t end) {
  constexpr std::size_t kWaiterBytes = 128;
  constexpr std::size_t kMostWaiters = 1000;
  const std::uint64_t state = image.memory->value<std::uint64_t>(mutex).value_or(0);
  const std::uint64_t last = (state & kAbseilWait) != 0 ? state & ~kAbseilFlags : 0;
  std::uint64_t waiter = last;
  for (std::size_t i = 0; waiter != 0 && i < kMostWaiters; ++i) {
    const std::vector<std::uint64_t> words = words_of(image.memory->bytes(waiter, kWaiterBytes));
    if (std::ranges::any_of(words, [&](std::uint64_t word) { return word >= start && word < end; })) return true;
    waiter = words.empty() ? 0 : words.front();
    if (waiter == last) break;
  }
  return false;
}

// Finds the lock of parking_lot for which the thread waits. The thread sleeps on a word in its own ThreadData. The
// ThreadData also contains the address of the lock. For a writer that waits until the readers have released the lock,
// the ThreadData contains this address plus 1.
std::optional<std::uint64_t> find_parking_lot(const image::Image& image, const image::Thread& thread,
                                              const StuckCall& call, LockFamily family) {
  constexpr std::uint64_t kNear = 64;
  constexpr std::uint64_t kRwlockAlignment = 8;
  const std::uint64_t start = (call.word & ~std::uint64_t{7}) - kNear;
  const std::vector<std::uint64_t> on_stack = words_of_wait(image, thread);
  const auto lock_of = [&](std::uint64_t word) {
    return family == LockFamily::kParkingLotRwlock ? word & ~std::uint64_t{1} : word;
  };
  const auto found = find_only_word(words_of(image.memory->bytes(start, 2 * kNear)), [&](std::uint64_t word) {
    const std::uint64_t lock = lock_of(word);
    if (family == LockFamily::kParkingLotRwlock && lock % kRwlockAlignment != 0) return false;
    const bool is_of_thread = word >= start && word < start + 2 * kNear;
    return !is_of_thread && image.mapping_of(lock) != nullptr && std::ranges::find(on_stack, lock) != on_stack.end();
  });
  return found ? std::optional(lock_of(*found)) : std::nullopt;
}

// True if one or several threads hold the lock.
bool is_held(const image::Memory& memory, const AwaitedLock& lock) {
  switch (lock.family) {
    case LockFamily::kNone: return false;
    case LockFamily::kRustMutex: return memory.value<std::uint32_t>(lock.address).value_or(0) != 0;
    case LockFamily::kRustRwlockRead:
    case LockFamily::kRustRwlockWrite: {
      constexpr std::uint32_t kHolders = (std::uint32_t{1} << 30U) - 1;  // the other bits say that threads wait
      return (memory.value<std::uint32_t>(lock.address).value_or(0) & kHolders) != 0;
    }
    case LockFamily::kParkingLotMutex: return (memory.value<std::uint8_t>(lock.address).value_or(0) & 1U) != 0;
    case LockFamily::kParkingLotRwlock: {
      constexpr std::uint64_t kWaiting = 3;
      return (memory.value<std::uint64_t>(lock.address).value_or(0) & ~kWaiting) != 0;
    }
    case LockFamily::kAbseil:
      return (memory.value<std::uint64_t>(lock.address).value_or(0) & (kAbseilReader | kAbseilWriter)) != 0;
  }
  return false;
}

class ReferenceSearch {
 public:
  ReferenceSearch(Scene& scene, std::size_t child, const model::Fork& fork, const AwaitedLock& lock)
      : scene_(scene),
        child_(child),
        image_(scene.subjects[child].image),
        parent_(scene.subjects[fork.process].image),
        is_parent_absent_(scene.subjects[fork.process].is_absent),
        parent_id_(fork.process),
        lock_(lock),
        any_word_([this](std::uint64_t address) { return image_.memory->value<std::uint64_t>(address); }) {}

  // Searches the stack of a thread of the child for a frame that refers to the lock. Returns the stack from that frame
  // outwards. nullopt: no frame refers to the lock, or the thread waits for the lock, or may wait for it.
  std::optional<model::Stack> find_own(const image::Thread& thread) {
    if (thread.has_ended || !thread.registers || !(*thread.registers)[symbols::kRsp]) return std::nullopt;
    const std::uint64_t sp = *(*thread.registers)[symbols::kRsp];
    const std::vector<std::byte> bytes = thread.stack.empty() ? read(sp, end_of_mapping(sp)) : thread.stack;
    if (!may_refer(*thread.registers, bytes)) return std::nullopt;
    return judge(symbols().find_reference(*thread.registers, {sp, bytes, &any_word_}, lock_.object), sp, bytes.size(),
                 find_awaited_lock(image_, thread, scene_.facts_of(child_, thread.tid).call));
  }

  // Does the same as find_own(), but for a lost thread: a thread of the parent that the fork did not copy.
  std::optional<model::Stack> find_lost(const model::Thread& thread) {
    if (const auto now = find_unchanged(thread)) {
      if (!may_refer(*now->thread->registers, now->bytes)) return std::nullopt;
      return judge(
          symbols().find_reference(*now->thread->registers, {now->start, now->bytes, &any_word_}, lock_.object),
          now->start, now->bytes.size(),
          find_awaited_lock(parent_, *now->thread, scene_.facts_of(parent_id_, thread.tid).call));
    }
    const std::uint64_t end = end_of_stack(thread);
    if (end == 0 || has_new_user(thread)) return std::nullopt;
    const proc::Mapping* const mapping = image_.mapping_of(end - 1);
    if (mapping == nullptr) return std::nullopt;
    const std::uint64_t start = std::max(mapping->start, end - std::min(end, kMostStackBytes));
    const std::vector<std::byte> bytes = read(start, end);
    if (!may_refer({}, bytes)) return std::nullopt;
    return judge(symbols().find_frozen_reference({start, bytes, nullptr}, lock_.object), start, bytes.size(),
                 std::nullopt);
  }

 private:
  struct UnchangedThread {
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

  // Finds the lost thread among the threads of the parent. Returns it only if its stack is equal to the copy of the
  // stack in the child's memory. Then the thread has probably not run since the fork. So its present registers are
  // taken for its registers at the fork.
  std::optional<UnchangedThread> find_unchanged(const model::Thread& thread) const {
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
    return UnchangedThread{&*now, sp, std::move(bytes)};
  }

  // True if the stack of the lost thread was given to a thread that the child has started since the fork. That thread
  // may have ended.
  bool has_new_user(const model::Thread& thread) const {
    if (thread.is_main || thread.pointer == 0) return false;
    return has_ended_since(image_, thread.pointer) ||
           std::ranges::find(image_.threads, thread.pointer, &image::Thread::fs_base) != image_.threads.end();
  }

  // Returns the address at which the stack of the thread ends; 0: it is not known. If glibc made the stack of a thread,
  // the stack ends below the struct pthread of the thread. The stack of the first thread is a mapping of its own.
  std::uint64_t end_of_stack(const model::Thread& thread) const {
    if (!thread.is_main) return thread.pointer;
    const auto first = std::ranges::find(image_.mappings, "[stack]", &proc::Mapping::path);
    return first != image_.mappings.end() ? first->end : 0;
  }

  // True if a register or a word of the stack contains the address of the lock.
  bool may_refer(const symbols::Registers& registers, const std::vector<std::byte>& bytes) const {
    const std::vector<std::uint64_t> words = words_of(bytes);
    return std::ranges::find(words, lock_.object) != words.end() ||
           std::ranges::find(registers, std::optional(lock_.object)) != registers.end();
  }

  // Returns the stack from the referring frame outwards. nullopt: no frame refers to the lock, or the thread waits for
  // the lock, or may wait for it. `start` and `size` describe the whole stack. `awaited`: the lock for which the thread
  // waits, if that is known.
  std::optional<model::Stack> judge(std::optional<symbols::StackReference> found, std::uint64_t start, std::size_t size,
                                    const std::optional<AwaitedLock>& awaited) const {
    if (!found || (awaited && awaited->address == lock_.address)) return std::nullopt;
    if (lock_.family == LockFamily::kAbseil) {
      if (waits_for_abseil_mutex(image_, lock_.address, start, start + size)) return std::nullopt;
    } else if (!awaited && is_taking_lock(*found)) {
      return std::nullopt;
    }
    return std::move(found->stack);
  }

  Scene& scene_;
  std::size_t child_;
  const image::Image& image_;
  const image::Image& parent_;
  bool is_parent_absent_;
  std::size_t parent_id_;
  AwaitedLock lock_;
  symbols::WordReader any_word_;
};

}  // namespace

LockFamily family_of_function(std::string_view function) {
  for (const FamilyName& known : kFamilyNames) {
    if (function.find(known.part) != std::string_view::npos) return known.family;
  }
  return is_abseil_lock(function) ? LockFamily::kAbseil : LockFamily::kNone;
}

std::optional<AwaitedLock> find_awaited_lock(const image::Image& image, const image::Thread& thread,
                                             const StuckCall& call) {
  if (call.word == 0 || !thread.registers || !(*thread.registers)[symbols::kRsp]) return std::nullopt;
  const LockFamily family = find_family(call.stack);
  std::optional<std::uint64_t> address = call.word;
  switch (family) {
    case LockFamily::kNone: return std::nullopt;
    case LockFamily::kRustMutex:
    case LockFamily::kRustRwlockRead: break;
    case LockFamily::kRustRwlockWrite: *address -= sizeof(std::uint32_t); break;  // a writer sleeps on the second word
    case LockFamily::kParkingLotMutex:
    case LockFamily::kParkingLotRwlock: address = find_parking_lot(image, thread, call, family); break;
    case LockFamily::kAbseil: address = find_abseil_mutex(image, thread, call); break;
  }
  if (!address) return std::nullopt;
  AwaitedLock lock{family, *address, *address};
  // A ReentrantLock begins with a word for its owner: the number that Rust gave to the owning thread.
  if (family == LockFamily::kRustMutex && is_in_reentrant_lock(call.stack)) lock.object -= sizeof(std::uint64_t);
  return lock;
}

void add_lock_references(Scene& scene, std::size_t child, const image::Thread& waiting, const model::Fork& fork,
                         model::Touch& touch) {
  const image::Image& image = scene.subjects[child].image;
  const auto lock = find_awaited_lock(image, waiting, scene.facts_of(child, waiting.tid).call);
  if (!lock || !is_held(*image.memory, *lock)) return;
  touch.awaited_lock = lock->object;
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
