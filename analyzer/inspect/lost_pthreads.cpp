#include "inspect/lost_pthreads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "forksight/abi/thread.hpp"
#include "inspect/pthreads.hpp"
#include "model/base_name.hpp"

namespace forksight::inspect {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::size_t kMostThreads = 100'000;
// The versions of glibc whose source was read to learn what fork() does to the lists of stacks, and which code erases a
// tid. Before glibc 2.34, a fork handler of libpthread changes the lists and erases the tids.
constexpr abi::Versions kForksKnown{{2, 28}, {2, 43}};

// The number of bytes that are searched at the end of each mapping. A struct pthread is at the end of its thread's
// stack. But the kernel may have merged the stack with the mapping that follows it.
constexpr std::uint64_t kSearched = std::uint64_t{64} << 10U;

template <class T>
T value_at(const std::vector<std::byte>& bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool is_code(const image::Image& image, std::uint64_t address) {
  const proc::Mapping* const mapping = image.mapping_of(address);
  return mapping != nullptr && mapping->executable;
}

// Finds the counter of forks of a glibc before 2.34. In such a glibc, fork() reads the address of the counter from a
// pointer. libpthread sets this pointer when libpthread is loaded. The code of fork():
//   movq disp32(%rip), %REG; testq %REG, %REG; je ...; addq $4, (%REG)
// nullopt: there is no such pointer, or it is null.
std::optional<std::uint64_t> find_counter_of_libpthread(std::uint64_t function, const std::vector<std::byte>& code,
                                                        const image::Memory& memory) {
  constexpr std::size_t kAddLength = 4;
  constexpr std::size_t kLoadLength = 7;
  constexpr std::size_t kMostBetween = 16;
  for (std::size_t add = kLoadLength; add + kAddLength <= code.size(); ++add) {
    const auto to = std::to_integer<unsigned>(code[add + 2]);
    const bool is_plain = to < 8 && to != 4 && to != 5;  // a register that has the address
    if (code[add] != std::byte{0x48} || code[add + 1] != std::byte{0x83} || !is_plain || code[add + 3] != std::byte{4})
      continue;
    for (std::size_t load = add - kLoadLength; add - load <= kLoadLength + kMostBetween; --load) {
      const bool is_load = code[load] == std::byte{0x48} && code[load + 1] == std::byte{0x8b};
      if (is_load && code[load + 2] == std::byte(to << 3U | 5U)) {
        const auto distance = std::int64_t{value_at<std::int32_t>(code, load + 3)};
        const auto counter =
            memory.value<std::uint64_t>(function + load + kLoadLength + static_cast<std::uint64_t>(distance));
        return counter && *counter != 0 ? counter : std::nullopt;
      }
      if (load == 0) break;
    }
  }
  return std::nullopt;
}

// Finds the counter of forks, __fork_generation. The only instruction of the form addq $4, disp32(%rip) in fork() adds
// to this counter (sysdeps/nptl/fork.h).
std::optional<std::uint64_t> find_counter(std::uint64_t function, const std::vector<std::byte>& code) {
  constexpr std::size_t kLength = 8;
  for (std::size_t i = 0; i + kLength <= code.size(); ++i) {
    const bool is_add = code[i] == std::byte{0x48} && code[i + 1] == std::byte{0x83} && code[i + 2] == std::byte{0x05};
    if (!is_add || code[i + 7] != std::byte{4}) continue;
    return function + i + kLength + static_cast<std::uint64_t>(std::int64_t{value_at<std::int32_t>(code, i + 3)});
  }
  return std::nullopt;
}

class Search {
 public:
  Search(const image::Image& child, const abi::ThreadLayout& layout) : child_(child), layout_(layout) {}

  // Searches the ends of stacks for the first words of a struct pthread.
  void look_at_stacks() {
    for (const proc::Mapping& mapping : child_.mappings) {
      const bool is_data = mapping.readable && mapping.writable && !mapping.executable && !mapping.shared;
      if (!is_data || !mapping.path.empty()) continue;
      const std::uint64_t start = mapping.end - std::min(mapping.end - mapping.start, kSearched);
      const std::vector<std::byte> bytes = child_.memory->bytes(start, mapping.end - start);
      for (std::uint64_t at = 0; at + abi::kThreadBytes <= bytes.size(); at += kAlignment) {
        const std::uint64_t pointer = start + at;
        if (value_at<std::uint64_t>(bytes, at) == pointer) add(pointer);
      }
    }
  }

  // Follows the ring that links the struct pthreads of the lost threads. fork() moves these struct pthreads to the ring
  // of unused stacks, GL (dl_stack_cache). _Fork() leaves them in the ring of living threads. Only one element of a
  // ring belongs to no thread: its head. Returns true if the whole ring was followed, so that all lost threads are
  // known.
  bool follow_list() {
    if (any_ring_member_ == 0) return false;
    const std::uint64_t begin = any_ring_member_ + layout_.list;
    std::size_t heads = 0;
    std::uint64_t node = begin;
    for (std::size_t count = 0; count < kMostThreads; ++count) {
      const auto next = child_.memory->value<std::uint64_t>(node);
      if (!next) return false;
      node = *next;
      if (node == begin) return heads == 1;
      if (!add(node - layout_.list) && ++heads > 1) return false;
    }
    return false;
  }

  // The struct pthread of the first thread, if that thread was not stopped; else 0.
  std::uint64_t of_first() const { return of_first_; }
  bool has_ended_one() const { return has_ended_one_; }
  bool is_bypassed() const { return bypassed_; }
  std::size_t strangers() const { return strangers_; }
  std::vector<LostThread> take() { return std::move(threads_); }

 private:
  // Returns false if there is no struct pthread at this address.
  bool add(std::uint64_t pointer) {
    if (known_.contains(pointer)) return true;
    const std::vector<std::byte> bytes = child_.memory->bytes(pointer, abi::kThreadBytes);
    if (bytes.size() < abi::kThreadBytes || value_at<std::uint64_t>(bytes, 0) != pointer ||
        value_at<std::uint64_t>(bytes, abi::kSelfInThread) != pointer) {
      return false;
    }
    known_.insert(pointer);
    if (std::ranges::find(child_.threads, pointer, &image::Thread::fs_base) != child_.threads.end()) return true;
    ++strangers_;
    LostThread thread;
    thread.pointer = pointer;
    thread.tid = value_at<std::int32_t>(bytes, layout_.tid);
    thread.start_routine = value_at<std::uint64_t>(bytes, layout_.start_routine);
    thread.argument = value_at<std::uint64_t>(bytes, layout_.argument);
    const bool has_own_stack = stack_owner(bytes) != layout_.stack_of_user;
    const bool has_start = is_code(child_, thread.start_routine);
    if ((value_at<std::uint32_t>(bytes, layout_.cancel_handling) & abi::kExitingOrTerminated) != 0) {
      has_ended_one_ = true;
    } else if (thread.tid >= 0 && (has_own_stack ? has_start : thread.tid > 0)) {
      if (thread.tid > 0 && child_.find_own(thread.tid) != nullptr) {
        if (thread.tid == child_.own_pid()) of_first_ = pointer;
        return true;
      }
      if (!has_start) thread.start_routine = 0;
      if (has_own_stack) any_ring_member_ = pointer;
      bypassed_ = bypassed_ || (has_own_stack && thread.tid > 0);
      threads_.push_back(thread);
    }
    return true;
  }

  std::uint32_t stack_owner(const std::vector<std::byte>& bytes) const {
    const auto owner = value_at<std::uint32_t>(bytes, layout_.stack_owner);
    return layout_.stack_owner_bytes == 1 ? owner & 0xffU : owner;
  }

  const image::Image& child_;
  const abi::ThreadLayout& layout_;
  std::set<std::uint64_t> known_;
  std::vector<LostThread> threads_;
  std::uint64_t of_first_ = 0;
  bool has_ended_one_ = false;
  bool bypassed_ = false;
  std::size_t strangers_ = 0;          // struct pthreads to which no thread of the image points
  std::uint64_t any_ring_member_ = 0;  // the struct pthread of a lost thread whose stack glibc made; 0: none
};

}  // namespace

std::optional<std::uint64_t> count_forks(const image::Image& image, symbols::Symbolizer& symbolizer) {
  constexpr std::size_t kMostCode = 1024;
  constexpr std::uint64_t kMostForks = std::uint64_t{1} << 32U;
  auto function = symbolizer.find_symbol("fork", "libc.so");
  if (!function) function = symbolizer.find_symbol("fork", "libc-2");  // as the file was called up to glibc 2.33
  if (!function) function = symbolizer.find_symbol("fork", model::base_name(image.exe));
  if (!function) return std::nullopt;
  const std::vector<std::byte> code = image.memory->bytes(*function, kMostCode);
  auto counter = find_counter(*function, code);
  if (!counter) counter = find_counter_of_libpthread(*function, code, *image.memory);
  if (!counter || *counter % 8 != 0) return std::nullopt;
  const proc::Mapping* const mapping = image.mapping_of(*counter);
  const auto count = image.memory->value<std::uint64_t>(*counter);
  if (mapping == nullptr || !mapping->writable || !count || *count % 4 != 0 || *count / 4 > kMostForks) {
    return std::nullopt;
  }
  return *count / 4;
}

LostPthreads find_lost_pthreads(const image::Image& child) {
  LostPthreads found;
  const abi::ThreadLayout* const layout = abi::thread_layout(child.libc.version);
  if (layout == nullptr || !kForksKnown.have(child.libc.version) || find_tid_offset(child) != layout->tid) return found;
  found.is_known = true;
  const auto first = std::ranges::find(child.threads, child.pid, &image::Thread::tid);
  if (first != child.threads.end() && first->registers && (*first->registers)[symbols::kRsp]) {
    const proc::Mapping* const stack = child.mapping_of(*(*first->registers)[symbols::kRsp]);
    found.first_forked = stack != nullptr && stack->path == "[stack]";
  }
  Search search(child, *layout);
  search.look_at_stacks();
  found.is_complete = search.follow_list() && !search.has_ended_one() && child.threads.size() == 1;
  found.bypassed = search.is_bypassed();
  found.threads = search.take();
  // Each new stack is mapped below the older ones. So the eldest thread has the highest address.
  std::ranges::sort(found.threads, std::ranges::greater{}, &LostThread::pointer);
  return found;
}

std::uint64_t find_first_pointer(const image::Image& image) {
  const auto first = std::ranges::find(image.threads, image.pid, &image::Thread::tid);
  if (first == image.threads.end() || first->fs_base != 0) return first == image.threads.end() ? 0 : first->fs_base;
  const abi::ThreadLayout* const layout = abi::thread_layout(image.libc.version);
  if (layout == nullptr) return 0;
  Search search(image, *layout);
  search.look_at_stacks();
  return search.of_first();
}

bool shows_no_other_thread(const image::Image& image) {
  const abi::ThreadLayout* const layout = abi::thread_layout(image.libc.version);
  if (layout == nullptr || find_tid_offset(image) != layout->tid) return false;
  Search search(image, *layout);
  search.look_at_stacks();
  return search.strangers() == 0;
}

bool has_ended_since(const image::Image& parent, std::uint64_t pointer, std::optional<std::uint64_t> start_routine) {
  const abi::ThreadLayout* const layout = abi::thread_layout(parent.libc.version);
  if (layout == nullptr) return false;
  const std::vector<std::byte> bytes = parent.memory->bytes(pointer, abi::kThreadBytes);
  const bool is_there = bytes.size() == abi::kThreadBytes && value_at<std::uint64_t>(bytes, 0) == pointer;
  if (!is_there || (value_at<std::uint32_t>(bytes, layout->cancel_handling) & abi::kExitingOrTerminated) != 0)
    return true;
  return start_routine && *start_routine != 0 &&
         value_at<std::uint64_t>(bytes, layout->start_routine) != *start_routine;
}

}  // namespace forksight::inspect
