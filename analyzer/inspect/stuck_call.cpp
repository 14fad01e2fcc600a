#include "inspect/stuck_call.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string_view>

#include "forksight/abi/barrier.hpp"
#include "forksight/abi/condition.hpp"
#include "forksight/abi/rwlock.hpp"
#include "inspect/libc_locks.hpp"

namespace forksight::inspect {
namespace {

constexpr std::size_t kRdi = 5;  // DWARF number

bool is_libstdcxx(std::string_view module) {
  return module.find("libstdc++") != std::string_view::npos || module.find("libc++") != std::string_view::npos;
}

// In a statically linked program, libc has no module of its own, so its functions are known only by their names.
bool is_of_runtime(const model::Frame& frame) {
  if (is_libc(frame.module) || is_libgomp(frame.module) || is_libstdcxx(frame.module)) return true;
  const std::string_view name = public_name(frame.function);
  return kind_of_function(name) != CallKind::kUnknown || name.starts_with("lll_lock_wait") ||
         name.starts_with("futex_abstimed_wait") || name == "syscall";
}

// Counts the innermost frames that are not the program's own code.
std::size_t count_runtime_frames(const model::Stack& stack) {
  const auto end = std::find_if_not(stack.frames.begin(), stack.frames.end(), is_of_runtime);
  return static_cast<std::size_t>(end - stack.frames.begin());
}

bool is_futex_wait(const proc::Syscall& call) {
  if (!call.in_syscall || call.number != SYS_futex) return false;
  const std::uint64_t command = call.args[1] & ~std::uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME} & 0xffffffffU;
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI || command == 13;
}

// Returns the address of the object that a futex word is part of; 0: not known. Some objects have two words on which
// threads sleep. The objects are aligned to 8 bytes, so the address of the word shows whether it is the first or the
// second word.
std::uint64_t object_of(CallKind kind, std::uint64_t word, std::uint32_t value, const abi::Libc& libc) {
  constexpr std::uint64_t kWord = sizeof(std::uint32_t);
  const std::uint64_t second = word % 8 == 0 ? 0 : kWord;  // the second of two words
  const abi::ConditionLayout* const condition = abi::layout_of(libc.condition);
  // If the rwlock prefers writers, a reader may wait behind a writer. Then the reader sleeps on the first word of the
  // rwlock, the count of readers.
  constexpr std::uint32_t kBehindWriter = abi::Rwlock::kWriteLocked | abi::Rwlock::kReadersWait;
  const bool is_count =
      (value & (kBehindWriter | abi::Rwlock::kWritePhase)) == kBehindWriter && value >> abi::Rwlock::kReaderShift != 0;
  if (kind == CallKind::kRwlockRead && is_count && abi::Rwlock::kVersions.have(libc.version)) return word;
  switch (kind) {
    case CallKind::kRwlockRead:
    case CallKind::kRwlockWrite:
      static_assert(offsetof(abi::Rwlock, writers_futex) == offsetof(abi::Rwlock, wrphase_futex) + kWord);
      return abi::Rwlock::kVersions.have(libc.version) ? word - offsetof(abi::Rwlock, wrphase_futex) - second : 0;
    case CallKind::kConditionWait: return condition == nullptr ? 0 : word - condition->signals - second;
    case CallKind::kConditionSignal:
    case CallKind::kConditionBroadcast:
      return condition == nullptr || condition->references == 0 ? 0 : word - condition->references - second;
    case CallKind::kConditionDestroy: return condition == nullptr ? 0 : word - condition->wrefs;
    case CallKind::kBarrierWait:
      return abi::Barrier::kVersions.have(libc.version) ? word - offsetof(abi::Barrier, round) : 0;
    default: return word;
  }
}

// Returns the kind of the innermost call. Inside of pthread_cond_signal() and similar functions a thread may sleep on
// an inner lock. Then the innermost call is the one for the inner lock.
CallKind innermost_kind(const model::Stack& stack, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const CallKind kind = kind_of_function(public_name(stack.frames[i].function));
    if (kind != CallKind::kUnknown) return kind;
  }
  return CallKind::kUnknown;
}

model::LibcCall libc_call_of(std::string_view function) {
  for (const std::string_view candidate : {function, public_name(function)}) {
    const std::uint64_t locks = libc_locks_of(candidate);
    if (locks != 0) return {std::string(candidate), locks};
  }
  return {};
}

// Returns the libc function that the program called, if this function takes a lock that fork() does not reset. The
// frames from `first` to before `count` belong to libc and other runtimes. `callee`: the function that the frame at
// `count` calls, or "".
model::LibcCall called_function(const model::Stack& stack, std::size_t first, std::size_t count,
                                const std::string& callee) {
  if (model::LibcCall call = libc_call_of(callee); call.locks != 0) return call;
  for (std::size_t i = count; i-- > first;) {
    if (model::LibcCall call = libc_call_of(stack.frames[i].function); call.locks != 0) return call;
  }
  return {};
}

// Finds the innermost frame of libc whose function has one of these names.
auto find_call(const model::Stack& stack, std::initializer_list<std::string_view> names) {
  return std::ranges::find_if(stack.frames, [&](const model::Frame& frame) {
    const std::string_view name = public_name(frame.function);
    return is_libc(frame.module) && std::ranges::find(names, name) != names.end();
  });
}

// True if an atfork handler runs: then the stack has a frame inside of fork() that is not of libc. If all frames inside
// of fork() belong to libc, the result is false, because fork() itself always ends.
bool is_in_fork_handler(const model::Stack& stack) {
  const auto fork = find_call(stack, {"fork", "libc_fork", "run_prefork_handlers", "run_postfork_handlers"});
  if (fork == stack.frames.end()) return false;
  return std::any_of(stack.frames.begin(), fork, [](const model::Frame& frame) { return !is_libc(frame.module); });
}

// Drops the frames inside of a parallel region, so that the stack begins where the program entered the region. This
// matters for a barrier, because the code of the region itself calls the barrier.
void drop_region_body(model::Stack& stack) {
  auto& frames = stack.frames;
  if (frames.empty() || frames.front().function.find("._omp_fn.") == std::string::npos) return;
  const auto is_gomp = [](const model::Frame& frame) { return is_libgomp(frame.module); };
  const auto entry = std::ranges::find_if(frames, is_gomp);
  if (entry != frames.end()) frames.erase(frames.begin(), std::find_if_not(entry, frames.end(), is_gomp));
}

}  // namespace

CalleeOf make_callee_of(const image::Image& image, symbols::Symbolizer& symbolizer) {
  return [&image, &symbolizer](const model::Frame& caller) -> std::string {
    for (const symbols::Module& module : image.modules) {
      // The return address is behind the last byte of the call.
      if (module.path == caller.module) return symbolizer.find_callee(module.bias + caller.offset + 1);
    }
    return {};
  };
}

StuckCall recognise(const image::Thread& thread, const model::Stack& stack, const CalleeOf& callee_of,
                    const abi::Libc& libc) {
  StuckCall found;
  const std::size_t count = count_runtime_frames(stack);
  const auto split = stack.frames.begin() + static_cast<std::ptrdiff_t>(count);
  found.stack.frames.assign(split, stack.frames.end());
  found.stack.cut = stack.cut;
  found.is_in_fork = is_in_fork_handler(stack);
  found.is_in_exit = find_call(stack, {"exit", "run_exit_handlers"}) != stack.frames.end();
  if (thread.call && is_futex_wait(*thread.call)) {
    found.word = thread.call->args[0];
    found.value = static_cast<std::uint32_t>(thread.call->args[2]);
    found.is_private = (thread.call->args[1] & FUTEX_PRIVATE_FLAG) != 0;
    found.is_timed = thread.call->args[3] != 0;
  }
  const auto gomp =
      std::find_if(stack.frames.begin(), split, [](const auto& frame) { return is_libgomp(frame.module); });
  const std::string callee = split == stack.frames.end() ? std::string() : callee_of(*split);
  found.kind = innermost_kind(stack, count);
  if (found.kind == CallKind::kUnknown && count > 0) found.kind = kind_of_function(public_name(callee));
  const bool is_openmp_lock =
      std::any_of(gomp, split, [](const auto& frame) { return is_lock_of_openmp(frame.function); });
  if (gomp != split && !is_openmp_lock && !is_lock_of_openmp(callee)) {
    found.kind = CallKind::kParallel;
    found.library = gomp->module;
    drop_region_body(found.stack);
    return found;
  }
  // libc waits for its inner locks in the same functions in which it waits for the locks of the program. So if the
  // program called a libc function that takes such an inner lock, that function decides the kind.
  const bool waits_for_no_lock = found.word == 0 && thread.call && thread.call->in_syscall;
  if (count > 0 && !waits_for_no_lock) found.libc_call = called_function(stack, 0, count, callee);
  if (found.libc_call.locks != 0) found.kind = CallKind::kLibcCall;
  if (found.kind == CallKind::kUnknown && found.word != 0) found.kind = CallKind::kFutex;
  if (found.word != 0) {
    found.object = object_of(found.kind, found.word, found.value, libc);
  } else if (found.kind == CallKind::kSpinlock && thread.registers && (*thread.registers)[kRdi]) {
    found.object = *(*thread.registers)[kRdi];
  }
  return found;
}

StuckCall recognise_outer_libc_call(const model::Stack& stack, const CalleeOf& callee_of) {
  StuckCall found;
  for (std::size_t i = stack.frames.size(); i-- > 1;) {
    if (is_libc(stack.frames[i].module) || !is_libc(stack.frames[i - 1].module)) continue;
    std::size_t first = i;
    while (first > 0 && is_libc(stack.frames[first - 1].module)) --first;
    found.libc_call = called_function(stack, first, i, callee_of(stack.frames[i]));
    if (found.libc_call.locks == 0) continue;
    found.kind = CallKind::kLibcCall;
    found.stack.frames.assign(stack.frames.begin() + static_cast<std::ptrdiff_t>(i), stack.frames.end());
    break;
  }
  return found;
}

}  // namespace forksight::inspect
