#include "watch/futex_lookup.hpp"

#include <linux/futex.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "proc/futex_word.hpp"
#include "proc/proc_fs.hpp"
#include "proc/python_gil.hpp"

namespace forksight::watch {
namespace {

WordMapping kind_of_mapping(const std::vector<proc::Mapping>& mappings, std::uint64_t word) {
  const proc::Mapping* const mapping = proc::find_mapping(mappings, word);
  if (mapping == nullptr) return WordMapping::kUnknown;
  if (mapping->shared) return WordMapping::kShared;
  // A private page that is not writable may be a page of the mapped file. Other processes then share this page.
  return mapping->writable ? WordMapping::kPrivate : WordMapping::kUnknown;
}

// True if the thread has ended, although the kernel still lists it. The kernel does so in two cases: other threads of
// the process still live, or the parent has not yet waited for the process.
bool is_dead(std::int32_t tid) {
  const auto stat = proc::read_thread_stat(tid);
  return stat && (stat->state == 'Z' || stat->state == 'X');
}

// Reads the words of one object in one piece. An object has up to ten words. In a process with thousands of threads,
// one system call for each word would take too long.
class WordReader {
 public:
  explicit WordReader(const proc::ProcessMemory& memory) : memory_(memory) {}

  std::optional<std::uint64_t> operator()(std::uint64_t address, std::size_t size) {
    if (has(address, size)) return word_at(address, size);
    // An aligned piece lies inside of one page. So the piece can be read as a whole or not at all.
    start_ = address / kPiece * kPiece;
    is_read_ = memory_.read(start_, piece_);
    return has(address, size) ? word_at(address, size) : memory_.read(address, size);
  }

 private:
  static constexpr std::size_t kPiece = 256;

  bool has(std::uint64_t address, std::size_t size) const {
    return is_read_ && size <= kPiece && address >= start_ && address - start_ <= kPiece - size;
  }
  std::optional<std::uint64_t> word_at(std::uint64_t address, std::size_t size) const {
    std::uint64_t value = 0;
    if (size > sizeof value) return std::nullopt;
    std::memcpy(&value, piece_.data() + (address - start_), size);
    return value;
  }

  const proc::ProcessMemory& memory_;
  std::array<std::byte, kPiece> piece_{};
  std::uint64_t start_ = 0;
  bool is_read_ = false;
};

std::optional<std::int32_t> read_futex_owner(const proc::ProcessMemory& memory, std::uint64_t word) {
  const auto value = memory.read(word, sizeof(std::uint32_t));
  if (!value) return std::nullopt;
  return static_cast<std::int32_t>(*value & static_cast<std::uint64_t>(FUTEX_TID_MASK));
}

}  // namespace

bool only_owner_can_unlock(const proc::FutexWord& word) {
  return word.use == model::FutexUse::kMutex &&
         (word.mutex_type == model::MutexType::kRecursive || word.mutex_type == model::MutexType::kErrorcheck);
}

void name_wakers(std::int32_t pid, const proc::WaitTarget& target, WaitFacts& facts) {
  const proc::FutexWord& word = facts.word;
  facts.wakers_known = true;
  if (target.priority_inherit) {
    if (facts.pi_owner) facts.wakers = {{pid, "mutex", *facts.pi_owner}};
    return;
  }
  switch (word.use) {
    case model::FutexUse::kMutex:
      if (!word.owner_is_gone) facts.wakers = {{pid, "mutex", word.owner}};
      break;
    case model::FutexUse::kRwlockRead:
    case model::FutexUse::kRwlockWrite:
      if (!word.owner_is_gone) facts.wakers = {{pid, "rwlock", word.owner}};
      break;
    case model::FutexUse::kJoin: facts.wakers = {{pid, "join", word.owner}}; break;
    case model::FutexUse::kGil: facts.wakers = {{pid, "GIL", word.owner}}; break;
    case model::FutexUse::kUnknown: break;
  }
  // If only the owner can unlock the mutex, and the owner has ended, the mutex stays locked.
  if (only_owner_can_unlock(word) && word.owner_is_gone) return;
  // After the owner of any other lock has ended, any thread can still unlock the lock, even if that is a mistake.
  if (facts.wakers.empty()) facts.wakers = {{pid, "futex"}};
}

const std::vector<proc::Mapping>& FutexLookup::mappings(std::int32_t tid) {
  if (!mappings_) mappings_ = proc::read_mappings(tid);
  return *mappings_;
}

const abi::Libc& FutexLookup::libc(std::int32_t tid) {
  if (!libc_) libc_ = proc::libc_of(tid, mappings(tid));
  return *libc_;
}

const proc::ProcessMemory& FutexLookup::memory(std::int32_t tid) {
  if (!memory_ || !memory_->is_open()) memory_.emplace(tid);
  return *memory_;
}

std::optional<proc::SharedPlace> FutexLookup::find_shared(const proc::ThreadSample& thread) {
  return proc::find_shared_place(mappings(thread.tid), proc::classify(thread).word);
}

WaitFacts FutexLookup::look_up(const proc::ThreadSample& thread) {
  WaitFacts facts;
  const proc::WaitTarget target = proc::classify(thread);
  facts.kernel_function = proc::read_file(proc::proc_path(thread.tid, "wchan")).text;
  if (target.kind == proc::WaitClass::kAwakable) look_up_gil(thread, facts);
  if (target.kind != proc::WaitClass::kPrivateFutex && target.kind != proc::WaitClass::kPlainFutex) return facts;
  const bool is_private = target.kind == proc::WaitClass::kPrivateFutex;
  facts.mapping = is_private ? WordMapping::kPrivate : kind_of_mapping(mappings(thread.tid), target.word);
  if (target.priority_inherit) facts.pi_owner = read_futex_owner(memory(thread.tid), target.word);
  const std::uint32_t depth = thread.status.ns_depth;
  const auto lives_here = [&](std::int32_t own) {
    const std::int32_t tid = numbers_.tid_of(own, depth);
    return tid != 0 && !is_dead(tid);
  };
  const auto lives = [&](std::int32_t own) {
    const auto tid = proc::find_in_namespace_of(thread.tid, own, depth);
    return tid != 0 && !(tid && is_dead(*tid));
  };
  const proc::HasTask owner_lives =
      facts.mapping == WordMapping::kShared ? proc::HasTask(lives) : proc::HasTask(lives_here);
  WordReader words(memory(thread.tid));
  const auto read = [&](std::uint64_t at, std::size_t size) { return words(at, size); };
  facts.word = proc::identify_word(thread.call, libc(thread.tid).version, read, lives_here, owner_lives);
  // Two threads may have had the id of the owner: a living thread of the process, and a thread that a fork left behind.
  const bool may_be_other = facts.mapping != WordMapping::kShared && facts.word.owner != 0 &&
                            !facts.word.owner_is_gone && has_two_numberings();
  if (may_be_other) facts.word = proc::FutexWord{};
  if (depth > 1) name_owner(thread, facts);
  if (facts.word.use != model::FutexUse::kUnknown || target.priority_inherit) {
    proc::WordModule module = proc::find_module(memory(thread.tid), mappings(thread.tid), target.word);
    facts.word.module = std::move(module.path);
    facts.word.bias = module.bias;
  }
  if (facts.mapping == WordMapping::kPrivate) name_wakers(pid_, target, facts);
  return facts;
}

bool FutexLookup::has_two_numberings() {
  if (!has_two_numberings_) has_two_numberings_ = proc::has_numbers_of_two_namespaces(pid_);
  return *has_two_numberings_;
}

bool FutexLookup::has_python(std::int32_t tid) {
  return std::ranges::any_of(mappings(tid), [](const proc::Mapping& one) { return proc::is_python_file(one.path); });
}

void FutexLookup::look_up_gil(const proc::ThreadSample& thread, WaitFacts& facts) {
  if (!proc::is_timed_private_wait(thread.call)) return;
  WordReader words(memory(thread.tid));
  const auto read = [&](std::uint64_t at, std::size_t size) { return words(at, size); };
  const auto gil = proc::find_gil_wait(thread.call, libc(thread.tid).version, read);
  if (!gil || !proc::is_data_of_python(mappings(thread.tid), gil->gil)) return;
  const std::int32_t holder = numbers_.tid_of(gil->holder, thread.status.ns_depth);
  if (holder == 0) return;
  facts.mapping = WordMapping::kPrivate;
  facts.word.use = model::FutexUse::kGil;
  facts.word.owner = holder;
  facts.word.lock = gil->gil;
  name_wakers(pid_, {}, facts);
}

bool FutexLookup::may_have_moved(const proc::ThreadSample& thread) {
  const proc::WaitTarget target = proc::classify(thread);
  if (target.kind != proc::WaitClass::kPlainFutex || target.priority_inherit) return false;
  const auto value = memory(thread.tid).read(target.word, sizeof(std::uint32_t));
  return value && static_cast<std::uint32_t>(*value) != static_cast<std::uint32_t>(thread.call.args[2]);
}

// Translates the owner's tid from the pid namespace of the process to that of forksight. The tid of an owner that has
// ended cannot be translated and stays as it is.
void FutexLookup::name_owner(const proc::ThreadSample& thread, WaitFacts& facts) {
  const std::uint32_t depth = thread.status.ns_depth;
  if (facts.pi_owner) facts.pi_owner = numbers_.tid_of(*facts.pi_owner, depth);
  proc::FutexWord& word = facts.word;
  if (word.owner == 0 || word.owner_is_gone) return;
  const bool is_shared = facts.mapping == WordMapping::kShared && word.use != model::FutexUse::kJoin;
  word.owner = is_shared ? proc::find_in_namespace_of(thread.tid, word.owner, depth).value_or(0)
                         : numbers_.tid_of(word.owner, depth);
  if (word.owner == 0) word = proc::FutexWord{};
}

}  // namespace forksight::watch
