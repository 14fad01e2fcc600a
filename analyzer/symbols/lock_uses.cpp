#include "symbols/lock_uses.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "symbols/call_graph.hpp"
#include "symbols/names.hpp"

namespace forksight::symbols {
namespace {

constexpr std::size_t kRdi = 5;
constexpr std::size_t kRsi = 4;
constexpr std::size_t kRax = 0;
constexpr std::size_t kMostInstructions = 4000;  // that the search for one next use reads
constexpr std::size_t kMostFramesInside = 64;    // frames that are examined, from the innermost one on
constexpr std::array<std::size_t, 6> kKeptInCalls = {3, 6, 12, 13, 14, 15};

bool is_end_of_path(const FullInstruction& instruction) {
  return instruction.is(ZYDIS_MNEMONIC_UD2) || instruction.is(ZYDIS_MNEMONIC_INT3) ||
         instruction.is(ZYDIS_MNEMONIC_HLT);
}

std::optional<std::uint64_t> direct_target(const FullInstruction& instruction, std::uint64_t end) {
  const ZydisDecodedOperand& operand = instruction.operands[0];
  if (operand.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || operand.imm.is_relative == ZYAN_FALSE) return std::nullopt;
  return end + static_cast<std::uint64_t>(operand.imm.value.s);
}

enum class WordUse { kNone, kReads, kReleases, kTakes };

std::int64_t as_signed(std::uint64_t value, std::uint32_t bits) {
  const std::uint32_t shift = 64 - std::min(bits, std::uint32_t{64});
  return static_cast<std::int64_t>(value << shift) >> shift;
}

// What an instruction does to the word of the lock. A lock is free while its word is 0, and a release makes the word
// smaller, or 0. All that cannot be told counts as taking the lock, so that nobody is named without a reason.
WordUse use_of_word(const FullInstruction& instruction, const MachineState& state, std::uint64_t next,
                    std::uint64_t lock) {
  for (std::size_t i = 0; i < instruction.decoded.operand_count_visible; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || state.address_of(operand, next) != lock) continue;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return WordUse::kReads;
    const ZydisDecodedOperand& other = instruction.operands[i == 0 ? 1 : 0];
    const bool has_other = instruction.decoded.operand_count_visible > 1;
    const auto value = has_other ? state.value_of(other, next) : std::nullopt;
    const std::int64_t change = value ? as_signed(*value, operand.size) : 0;
    switch (instruction.decoded.mnemonic) {
      case ZYDIS_MNEMONIC_MOV:
      case ZYDIS_MNEMONIC_XCHG:
      case ZYDIS_MNEMONIC_CMPXCHG: return value == 0U ? WordUse::kReleases : WordUse::kTakes;
      case ZYDIS_MNEMONIC_ADD:
      case ZYDIS_MNEMONIC_XADD: return change < 0 ? WordUse::kReleases : WordUse::kTakes;
      case ZYDIS_MNEMONIC_SUB: return change > 0 ? WordUse::kReleases : WordUse::kTakes;
      case ZYDIS_MNEMONIC_DEC:
      case ZYDIS_MNEMONIC_BTR:
      case ZYDIS_MNEMONIC_AND: return WordUse::kReleases;
      default: return WordUse::kTakes;
    }
  }
  return WordUse::kNone;
}

}  // namespace

std::string LockUses::find_target_name(const AddressSpace::Place& place, const FullInstruction& instruction,
                                       std::uint64_t end) {
  // Through the linkage table, the name is in the file. Else the target is a function of this or another module.
  const CodeRange whole{place.address, place.address};
  const auto range = place.binary->code().function_at(place.address);
  const CodeFacts& facts = place.binary->code().facts(range.value_or(whole));
  const std::uint64_t link_end = end - place.module->bias;
  const auto branch = std::ranges::lower_bound(facts.branches, link_end, {}, &Branch::end);
  if (branch != facts.branches.end() && branch->end == link_end && branch->name != nullptr) {
    return readable_name(branch->name);
  }
  auto target = direct_target(instruction, end);
  if (!target && instruction.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
      instruction.operands[0].mem.base == ZYDIS_REGISTER_RIP) {
    target = memory_(end + static_cast<std::uint64_t>(instruction.operands[0].mem.disp.value));
  }
  if (!target) return {};
  const AddressSpace::Place callee = space_.locate(*target);
  if (!callee) return {};
  const Symbol* const symbol = callee.binary->symbols().find_function(callee.address);
  return symbol != nullptr && symbol->start == callee.address ? readable_name(symbol->name) : std::string();
}

const LockFunction* LockUses::find_call(const RawFrame& frame) {
  if (frame.is_exact) return nullptr;
  const AddressSpace::Place place = space_.locate(frame.lookup_address());
  if (!place) return nullptr;
  const auto range = place.binary->code().function_at(place.address);
  if (!range) return nullptr;
  // A call instruction has 2 to 7 bytes; only a disassembly from the function's start shows how many.
  const std::uint64_t end = frame.pc - place.module->bias;
  auto bytes = place.binary->elf().bytes_at(range->start);
  std::uint64_t at = range->start;
  while (at < end && !bytes.empty()) {
    const auto instruction = decode_fully(bytes);
    const std::uint64_t length = instruction ? instruction->decoded.length : 1;
    if (instruction && at + length == end) {
      if (!instruction->is(ZYDIS_MNEMONIC_CALL)) return nullptr;
      return find_lock_function(find_target_name(place, *instruction, frame.pc));
    }
    at += length;
    bytes = bytes.subspan(std::min<std::size_t>(length, bytes.size()));
  }
  return nullptr;
}

// The instructions before a call, from the last place on that a jump leads to or comes from. The registers that calls
// keep are the same before the call as in the frame, which is behind it.
std::optional<MachineState> LockUses::find_state_at_call(const RawFrame& frame, const Registers& registers) {
  const AddressSpace::Place place = space_.locate(frame.lookup_address());
  const auto range = place ? place.binary->code().function_at(place.address) : std::nullopt;
  if (!range) return std::nullopt;
  const std::uint64_t end = frame.pc - place.module->bias;
  struct Line {
    FullInstruction instruction;
    std::uint64_t end = 0;
  };
  std::vector<Line> lines;
  std::set<std::uint64_t> targets;
  auto bytes = place.binary->elf().bytes_at(range->start);
  for (std::uint64_t at = range->start; at < range->end && !bytes.empty();) {
    const auto instruction = decode_fully(bytes);
    const std::uint64_t length = instruction ? instruction->decoded.length : 1;
    at += length;
    bytes = bytes.subspan(std::min<std::size_t>(length, bytes.size()));
    if (!instruction) continue;
    if (const auto target = direct_target(*instruction, at); target && !instruction->is(ZYDIS_MNEMONIC_CALL)) {
      targets.insert(*target);
    }
    if (at <= end) lines.push_back({*instruction, at});
    if (lines.size() > kMostInstructions * 16) return std::nullopt;
  }
  if (lines.empty() || lines.back().end != end) return std::nullopt;
  std::size_t first = lines.size() - 1;
  while (first > 0) {
    const Line& before = lines[first - 1];
    const auto category = before.instruction.decoded.meta.category;
    const bool is_branch = category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_RET ||
                           category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR;
    if (is_branch || targets.contains(before.end)) break;
    --first;
  }
  // rsp may change in these lines, and the frame has its last value.
  Registers begin{};
  for (const std::size_t number : kKeptInCalls) begin[number] = registers[number];
  begin[kRsp] = registers[kRsp];
  const auto run = [&](const Registers& from) {
    MachineState state(from, memory_);
    for (std::size_t i = first; i + 1 < lines.size(); ++i) {
      state.execute(lines[i].instruction, lines[i].end + place.module->bias);
    }
    return state;
  };
  MachineState state = run(begin);
  bool is_same = true;
  for (const std::size_t number : kKeptInCalls) {
    if (!begin[number] || state.value(number) == begin[number]) continue;
    begin[number].reset();  // the lines change it, so that its value before them is not known
    is_same = false;
  }
  if (state.value(kRsp) != begin[kRsp]) {
    begin[kRsp].reset();
    is_same = false;
  }
  return is_same ? state : run(begin);
}

std::optional<std::uint64_t> LockUses::find_lock(const LockFunction& function, const MachineState& state) {
  switch (function.argument) {
    case LockArgument::kFirst: return state.value(kRdi);
    case LockArgument::kSecond: return state.value(kRsi);
    case LockArgument::kFirstOrNext:
    case LockArgument::kGuard:
    case LockArgument::kFirstOfDrop: break;
  }
  return std::nullopt;
}

LockUses::Match LockUses::is_about(const LockFunction& function, const MachineState& state, std::uint64_t lock) {
  const auto first = state.value(kRdi);
  const auto second = state.value(kRsi);
  const auto match = [&](const std::optional<std::uint64_t>& value) {
    return !value ? Match::kUnknown : *value == lock ? Match::kYes : Match::kNo;
  };
  switch (function.argument) {
    case LockArgument::kFirst:
    case LockArgument::kFirstOfDrop: return match(first);
    case LockArgument::kSecond: return match(second);
    case LockArgument::kFirstOrNext: return std::max(match(first), match(second));
    case LockArgument::kGuard: break;
  }
  if (!first || match(first) == Match::kYes) return match(first);
  return std::max(match(state.read(*first)), match(state.read(*first + sizeof(std::uint64_t))));
}

LockUses::NextUse LockUses::find_next_use(const RawFrame& frame, const Registers& registers, std::uint64_t lock,
                                          bool is_any) {
  struct Path {
    std::uint64_t address;  // run-time
    MachineState state;
  };
  std::vector<Path> paths;
  MachineState begin(registers, memory_);
  if (!frame.is_exact) begin.pass_call();
  paths.push_back({frame.pc, std::move(begin)});
  std::set<std::uint64_t> visited;
  bool releases = false;
  bool leaves = false;
  while (!paths.empty()) {
    Path path = std::move(paths.back());
    paths.pop_back();
    while (true) {
      if (!visited.insert(path.address).second) break;
      if (visited.size() > kMostInstructions) return NextUse::kLeaves;
      const AddressSpace::Place place = space_.locate(path.address);
      if (!place || !place.binary->elf().is_executable(place.address)) {
        leaves = true;
        break;
      }
      const auto instruction = decode_fully(place.binary->elf().bytes_at(place.address));
      if (!instruction || is_end_of_path(*instruction)) break;
      const std::uint64_t next = path.address + instruction->decoded.length;
      const auto category = instruction->decoded.meta.category;
      if (category == ZYDIS_CATEGORY_RET) {
        leaves = true;
        break;
      }
      const bool is_call = category == ZYDIS_CATEGORY_CALL;
      const bool is_jump = category == ZYDIS_CATEGORY_UNCOND_BR;
      const auto target = direct_target(*instruction, next);
      if (is_call || is_jump) {
        const std::string name = find_target_name(place, *instruction, next);
        if (never_returns(name)) break;
        const LockFunction* const function = find_lock_function(name);
        const Match match = function == nullptr ? Match::kNo : is_about(*function, path.state, lock);
        if (match == Match::kYes && function->role != LockRole::kReleases) return NextUse::kTakes;
        if (match == Match::kYes || (is_any && match == Match::kUnknown && function->role == LockRole::kReleases)) {
          releases = true;
          break;
        }
        // It may be this lock that is taken. A drop that is not about this lock is no use of any lock.
        const bool may_take = match == Match::kUnknown && function->role != LockRole::kReleases;
        if (may_take) leaves = true;
        if (is_call) {
          path.state.pass_call();
          path.address = next;
          continue;
        }
        if (!target) {
          leaves = true;
          break;
        }
        path.address = *target;
        continue;
      }
      if (category == ZYDIS_CATEGORY_COND_BR) {
        if (!target) {
          leaves = true;
          break;
        }
        const auto is_taken = path.state.takes(*instruction);
        if (!is_taken) paths.push_back({*target, path.state});
        path.address = is_taken.value_or(false) ? *target : next;
        continue;
      }
      const WordUse use = use_of_word(*instruction, path.state, next, lock);
      if (use == WordUse::kTakes) return NextUse::kTakes;
      if (use == WordUse::kReleases) {
        releases = true;
        break;
      }
      path.state.execute(*instruction, next);
      path.address = next;
    }
  }
  if (leaves) return NextUse::kLeaves;
  return releases ? NextUse::kReleases : NextUse::kNothing;
}

std::optional<AwaitedLock> LockUses::find_awaited(const Walk& walk, const std::vector<Registers>& registers) {
  const std::size_t count = std::min({walk.frames.size(), registers.size(), kMostFramesInside});
  for (std::size_t i = 0; i < count; ++i) {
    const LockFunction* const function = find_call(walk.frames[i]);
    if (function == nullptr) continue;
    // It waits for a condition, and not for the lock.
    if (function->role != LockRole::kTakes) return std::nullopt;
    const auto state = find_state_at_call(walk.frames[i], registers[i]);
    const auto lock = state ? find_lock(*function, *state) : std::nullopt;
    if (lock) return AwaitedLock{*lock, function->word_bytes, function->lock};
  }
  return std::nullopt;
}

LockUses::Stand LockUses::find_stand(const Walk& walk, const std::vector<Registers>& registers, std::uint64_t lock) {
  const std::size_t count = std::min({walk.frames.size(), registers.size(), kMostFramesInside});
  Stand stand;
  // The function that the frame called takes the lock, and has not returned.
  bool is_taking = false;
  bool is_unsure = false;  // it takes a lock whose address is not known
  for (std::size_t i = 0; i < count; ++i) {
    const RawFrame& frame = walk.frames[i];
    if (const LockFunction* const function = find_call(frame); function != nullptr) {
      const auto state = find_state_at_call(frame, registers[i]);
      const Match match = state ? is_about(*function, *state, lock) : Match::kUnknown;
      if (match == Match::kYes && function->role == LockRole::kReleases) return stand;
      const bool takes = match != Match::kNo && function->role != LockRole::kReleases;
      // If this function releases again what it takes here, and it cannot be told which lock that is, its callers do
      // not count on it.
      const bool is_balanced =
          takes && match == Match::kUnknown && find_next_use(frame, registers[i], lock, true) == NextUse::kReleases;
      // What the called function was taking, if anything, is another lock.
      if (match == Match::kNo && is_unsure) is_taking = false;
      is_unsure = is_unsure || (takes && match == Match::kUnknown);
      if (is_balanced) {
        is_taking = false;
        is_unsure = false;
        continue;
      }
      is_taking = is_taking || takes;
    }
    if (is_taking) stand.kind = LockStand::Kind::kWaits;
    switch (find_next_use(frame, registers[i], lock)) {
      case NextUse::kReleases:
        if (!is_taking) return {LockStand::Kind::kHolds, i};
        is_taking = false;  // this function will release what it is taking now; its callers do not count on it
        break;
      case NextUse::kTakes:
        // A thread that is going to take the lock does not hold it. Which function releases it then is not known.
        is_taking = true;
        stand.kind = LockStand::Kind::kWaits;
        break;
      case NextUse::kNothing:
      case NextUse::kLeaves: break;
    }
  }
  return stand;
}

}  // namespace forksight::symbols
