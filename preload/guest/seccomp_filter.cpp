#include "guest/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "guest/busy_flag.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint32_t kMostSteps = BPF_MAXINSNS;

// What is known about the accumulator before a step of the filter's program. Filters of libseccomp, and hand-written
// filters, decide by the accumulator alone. So the index register and the scratch memory are not followed.
struct Accumulator {
  bool is_reached;
  bool is_known;
  std::uint32_t value;
};

constinit sock_filter g_steps[kMostSteps] = {};
constinit Accumulator g_before[kMostSteps] = {};  // for each step, what is known before it
constinit BusyFlag g_in_use;

// Notes that `step` can be reached with this accumulator. Jumps only go forward. So one pass over the steps in their
// order sees each step after all steps that lead to it.
void reach(std::uint32_t step, std::uint32_t count, const Accumulator& with) {
  if (step >= count) return;
  Accumulator& there = g_before[step];
  if (!there.is_reached) {
    there = with;
    there.is_reached = true;
  } else if (!with.is_known || with.value != there.value) {
    there.is_known = false;
  }
}

std::uint32_t compute(std::uint16_t operation, std::uint32_t a, std::uint32_t k, bool& is_known) {
  switch (operation) {
    case BPF_ADD: return a + k;
    case BPF_SUB: return a - k;
    case BPF_MUL: return a * k;
    case BPF_AND: return a & k;
    case BPF_OR: return a | k;
    case BPF_XOR: return a ^ k;
    case BPF_LSH: return k < 32 ? a << k : 0;
    case BPF_RSH: return k < 32 ? a >> k : 0;
    case BPF_NEG: return ~a + 1;
    default: is_known = false; return 0;
  }
}

Accumulator load(const sock_filter& step, std::uint32_t number) {
  const std::uint16_t mode = BPF_MODE(step.code);
  if (mode == BPF_IMM) return {true, true, step.k};
  if (mode == BPF_LEN) return {true, true, sizeof(seccomp_data)};
  if (mode == BPF_ABS && step.k == offsetof(seccomp_data, nr)) return {true, true, number};
  if (mode == BPF_ABS && step.k == offsetof(seccomp_data, arch)) return {true, true, AUDIT_ARCH_X86_64};
  return {true, false, 0};
}

bool decide(std::uint16_t operation, std::uint32_t a, std::uint32_t k) {
  switch (operation) {
    case BPF_JEQ: return a == k;
    case BPF_JGT: return a > k;
    case BPF_JGE: return a >= k;
    default: return (a & k) != 0;  // BPF_JSET
  }
}

void follow_jump(const sock_filter& step, std::uint32_t at, std::uint32_t count, const Accumulator& now) {
  if (BPF_OP(step.code) == BPF_JA) return reach(at + 1 + step.k, count, now);
  const bool is_decided = now.is_known && BPF_SRC(step.code) == BPF_K;
  const bool is_true = is_decided && decide(BPF_OP(step.code), now.value, step.k);
  if (!is_decided || is_true) reach(at + 1 + step.jt, count, now);
  if (!is_decided || !is_true) reach(at + 1 + step.jf, count, now);
}

bool is_harmless(const sock_filter& step, const Accumulator& now) {
  const bool is_known = BPF_RVAL(step.code) == BPF_K || now.is_known;
  const std::uint32_t answer = BPF_RVAL(step.code) == BPF_K ? step.k : now.value;
  switch (answer & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_ERRNO: return is_known;
    default: return false;
  }
}

// True if every return statement of the filter that this call can reach is harmless.
bool permits(std::uint32_t count, std::uint32_t number) {
  for (std::uint32_t at = 0; at < count; ++at) g_before[at] = {};
  g_before[0] = {true, true, 0};
  for (std::uint32_t at = 0; at < count; ++at) {
    Accumulator now = g_before[at];
    if (!now.is_reached) continue;
    const sock_filter& step = g_steps[at];
    switch (BPF_CLASS(step.code)) {
      case BPF_RET:
        if (!is_harmless(step, now)) return false;
        continue;
      case BPF_JMP: follow_jump(step, at, count, now); continue;
      case BPF_LD: now = load(step, number); break;
      case BPF_ALU:
        now.is_known = now.is_known && (BPF_SRC(step.code) == BPF_K || BPF_OP(step.code) == BPF_NEG);
        now.value = compute(BPF_OP(step.code), now.value, step.k, now.is_known);
        break;
      case BPF_MISC:
        if (BPF_MISCOP(step.code) == BPF_TXA) now.is_known = false;
        break;
      default: break;  // a load into the index register, or a store into the scratch memory
    }
    reach(at + 1, count, now);
  }
  return true;
}

constexpr std::int16_t kCalls[] = {
#define FORKSIGHT_CALL(number) number,
#include "guest/shim_calls.def"
};

}  // namespace

bool read_filter(const void* program, CallSet& refused) {
  sock_fprog fixed{};
  if (read_memory(program, &fixed, sizeof fixed) != sizeof fixed || fixed.len == 0 || fixed.len > kMostSteps) {
    return false;
  }
  if (!g_in_use.take()) return false;
  const std::size_t bytes = fixed.len * sizeof(sock_filter);
  const bool is_read = read_memory(fixed.filter, g_steps, bytes) == bytes;
  for (const std::int16_t number : kCalls) {
    if (is_read && !permits(fixed.len, static_cast<std::uint32_t>(number))) refused.add(number);
  }
  g_in_use.give_back();
  return is_read;
}

CallSet refused_in_strict_mode() {
  CallSet all{};
  for (std::uint64_t& word : all.words) word = ~std::uint64_t{0};
  all.remove(SYS_read);
  all.remove(SYS_write);
  return all;
}

}  // namespace forksight
