#include "symbols/frozen.hpp"

#include <algorithm>

#include "symbols/call_graph.hpp"
#include "symbols/call_path.hpp"

namespace forksight::symbols {
namespace {

// Limits of the search. A hostile trace must not cost more time than a large honest trace.
constexpr std::size_t kMaxCandidates = 1000;
constexpr std::size_t kMaxFunctionsVisited = 20000;

bool is_complete(const Walk& walk, bool is_cut) {
  if (walk.end == WalkEnd::kThreadStart) return true;
  return is_cut && walk.end == WalkEnd::kBytesEnd && walk.frames.size() > 2;
}

bool has_refuted_link(AddressSpace& space, const std::vector<RawFrame>& frames) {
  for (std::size_t i = 1; i < frames.size(); ++i) {
    if (check_link(space, frames[i - 1], frames[i]) == Link::kRefuted) return true;
  }
  return false;
}

// A caller that is still on the stack, and the path of calls from it to the innermost frame.
struct Resumption {
  Walk outer;
  CallPath path;
};

// Returns a path that consists of one call: the function `query.from`, which is still on the stack, makes a call by
// pointer. The code does not show the further calls of the path. nullopt if `query.from` makes no call by pointer.
std::optional<CallPath> path_by_pointer(const PathQuery& query) {
  const auto& calls = query.from.binary->code().facts(query.from.range).pointer_calls;
  if (calls.empty()) return std::nullopt;
  return CallPath{{{query.from, query.from.module->bias + calls.front(), query.from_sp, true}}, false};
}

// True if the sizes of the frames add up, and the functions that have returned called nothing after they took the lock.
// The constructor of a lock guard and a wrapper of a lock function are examples of such functions. A function that
// calls something after it took a lock usually releases the lock before it returns.
bool is_ordinary(const CallPath& path) {
  if (!path.is_exact) return false;
  return std::all_of(path.sites.begin() + 1, path.sites.end(), [](const CallSite& site) {
    return ends_after(site.function, site.return_address - site.function.module->bias);
  });
}

class Resync {
 public:
  Resync(AddressSpace& space, Unwinder& unwinder, const StackBytes& stack, bool is_cut)
      : space_(space), unwinder_(unwinder), stack_(stack), is_cut_(is_cut) {}

  // Finds the callers of `innermost`. The return address of `innermost` is, or was, right below `cfa`.
  std::optional<Resumption> find(const RawFrame& innermost, std::uint64_t cfa);

 private:
  std::vector<std::optional<std::uint64_t>> frame_pointers(std::uint64_t slot, std::uint64_t word) const;
  std::optional<Walk> walk_from(std::uint64_t slot, std::uint64_t word, Registers& registers);
  std::optional<PathQuery> query_for(const Walk& outer, const Registers& registers, const Function& goal,
                                     std::uint64_t cfa);

  AddressSpace& space_;
  Unwinder& unwinder_;
  const StackBytes& stack_;
  bool is_cut_;
  std::size_t candidates_ = 0;
  std::size_t budget_ = kMaxFunctionsVisited;
};

// Returns the possible values of rbp after the return to the return address `word`, which is on the stack at `slot`.
// One value may follow from the size of the function's frame. Another value is right below `slot`, if a callee with a
// frame pointer saved it. The value nullopt is for functions that do not need rbp.
std::vector<std::optional<std::uint64_t>> Resync::frame_pointers(std::uint64_t slot, std::uint64_t word) const {
  std::vector<std::optional<std::uint64_t>> candidates;
  const auto function = function_of(space_, {word, slot + 8, false, false, false});
  const std::uint64_t call_end = function ? word - function->module->bias : 0;
  if (function && !function->binary->cfi().stack_depth(call_end - 1)) {
    for (const std::uint64_t depth : frame_depths(*function, call_end)) candidates.push_back(slot + 8 + depth - 16);
  }
  const auto below = stack_.read(slot - 8);
  if (below && *below > slot && *below < stack_.end() && *below % 8 == 0) candidates.push_back(below);
  candidates.push_back(std::nullopt);
  return candidates;
}

// Returns the walk that starts at the return address `word`. Returns nullopt unless the walk is sound up to the start
// of the thread. If the bytes are cut, the walk need only be sound up to the end of the bytes.
std::optional<Walk> Resync::walk_from(std::uint64_t slot, std::uint64_t word, Registers& registers) {
  registers = Registers{};
  registers[kReturnAddress] = word;
  registers[kRsp] = slot + 8;
  for (const std::optional<std::uint64_t> frame_pointer : frame_pointers(slot, word)) {
    registers[kRbp] = frame_pointer;
    Walk walk = unwinder_.walk(registers, stack_, true);
    if (is_complete(walk, is_cut_) && !has_refuted_link(space_, walk.frames)) return walk;
  }
  return std::nullopt;
}

std::optional<PathQuery> Resync::query_for(const Walk& outer, const Registers& registers, const Function& goal,
                                           std::uint64_t cfa) {
  const RawFrame& frame = outer.frames.front();
  const auto function = function_of(space_, frame);
  if (!function) return std::nullopt;
  PathQuery query;
  query.from = *function;
  query.from_sp = frame.sp;
  query.from_cfa =
      function->binary->cfi().frame_address(frame.lookup_address() - function->module->bias, registers, stack_);
  query.goal = goal;
  query.goal_cfa = cfa;
  return query;
}

std::optional<Resumption> Resync::find(const RawFrame& innermost, std::uint64_t cfa) {
  const auto goal = function_of(space_, innermost);
  std::optional<Resumption> by_code;     // a path exists for which is_ordinary() is false
  std::optional<Resumption> by_pointer;  // a path may lead through a call by pointer
  for (std::uint64_t slot = (cfa - 1) & ~std::uint64_t{7}; candidates_ < kMaxCandidates; slot += 8) {
    const auto word = stack_.read(slot);
    if (!word) break;
    if (!unwinder_.is_return_address(*word)) continue;
    ++candidates_;
    Registers registers{};
    std::optional<Walk> outer = walk_from(slot, *word, registers);
    if (!outer || !goal) continue;
    const auto query = query_for(*outer, registers, *goal, cfa);
    if (!query) continue;
    auto path = find_call_path(*query, budget_);
    if (path && is_ordinary(*path)) return Resumption{std::move(*outer), std::move(*path)};
    if (path && !by_code) {
      // The path may start in this function, or in an inner function that is also on the stack and calls by pointer.
      // Only the part that both paths share is kept.
      if (by_pointer) path->sites.resize(1);
      path->sites.front().is_ambiguous = path->sites.front().is_ambiguous || by_pointer;
      by_code = Resumption{std::move(*outer), std::move(*path)};
      continue;
    }
    if (!path && !by_pointer && (path = path_by_pointer(*query))) {
      by_pointer = Resumption{std::move(*outer), std::move(*path)};
    }
  }
  return by_code ? by_code : by_pointer;
}

// Returns the possible CFAs of `frame`. Only the registers of the innermost frame are certain, because an rbp that was
// saved on the stack may be stale. `registers`: those of `frame` if it is the innermost frame, else null.
std::vector<std::uint64_t> frame_addresses(AddressSpace& space, const RawFrame& frame, const Registers* registers,
                                           const StackBytes& stack) {
  std::vector<std::uint64_t> addresses;
  const auto place = space.locate(frame.lookup_address());
  if (registers != nullptr && place) {
    if (const auto cfa = place.binary->cfi().frame_address(place.address, *registers, stack)) addresses.push_back(*cfa);
  } else if (const auto function = function_of(space, frame)) {
    for (const std::uint64_t depth : frame_depths(*function, frame.pc - function->module->bias)) {
      addresses.push_back(frame.sp + depth);
    }
  }
  std::erase_if(addresses, [&](std::uint64_t address) { return address <= frame.sp; });
  return addresses;
}

void append(Walk& result, Resumption resumption) {
  std::vector<RawFrame>& outer = resumption.outer.frames;
  const std::vector<CallSite>& sites = resumption.path.sites;
  for (std::size_t i = sites.size(); i-- > 1;) {
    result.frames.push_back({sites[i].return_address, sites[i].sp, false, true, sites[i].is_ambiguous});
  }
  outer.front().pc = sites.front().return_address;
  outer.front().is_line_unknown = sites.front().is_ambiguous;
  for (RawFrame& frame : outer) {
    frame.is_approximate = true;
    result.frames.push_back(frame);
  }
  result.end = resumption.outer.end;
}

// True if the function of `caller` makes another call that leads into the function of `callee`, and rsp is the same at
// both calls.
bool has_another_call(AddressSpace& space, const RawFrame& callee, const RawFrame& caller) {
  const auto inner = function_of(space, callee);
  const auto outer = function_of(space, caller);
  if (!inner || !outer) return false;
  Cfi& cfi = outer->binary->cfi();
  const std::uint64_t end = caller.pc - outer->module->bias;
  const auto depth = cfi.stack_depth(end - 1);
  for (const Branch& branch : outer->binary->code().facts(outer->range).branches) {
    if (!branch.is_call || branch.end == end || cfi.stack_depth(branch.end - 1) != depth) continue;
    if (is_same_line(*outer, end, branch.end)) continue;
    if (leads_into(*outer, branch, *inner) == Link::kProved) return true;
  }
  return false;
}

// Marks the frames whose lines are not known. A stack that looks sound may come from a later call. For example, if
// `lock` in "lock(a); lock(b);" is a wrapper, the second call leaves the same frames as the first call. Only the return
// address in their caller differs. So the line of the wrapper's caller is known only if the caller makes just one such
// call.
void mark_lines_uncertain(AddressSpace& space, Walk& walk) {
  for (std::size_t i = 0; i + 1 < walk.frames.size(); ++i) {
    const RawFrame& frame = walk.frames[i];
    const auto function = function_of(space, frame);
    if (!function || !ends_after(*function, frame.pc - function->module->bias)) return;
    RawFrame& caller = walk.frames[i + 1];
    if (check_link(space, frame, caller) != Link::kProved) return;
    if (!has_another_call(space, frame, caller)) continue;
    caller.is_line_unknown = true;
    caller.is_approximate = true;
  }
}

}  // namespace

Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut) {
  Unwinder unwinder(space);
  Walk plain = unwinder.walk(innermost, stack, true);
  if (is_complete(plain, is_cut) && !has_refuted_link(space, plain.frames)) {
    mark_lines_uncertain(space, plain);
    return plain;
  }

  // Keeps the callers that the machine code proves. The search starts from the outermost kept caller.
  Walk result;
  result.frames.push_back(plain.frames.front());
  std::size_t kept = 1;
  while (kept < plain.frames.size() && check_link(space, plain.frames[kept - 1], plain.frames[kept]) == Link::kProved) {
    result.frames.push_back(plain.frames[kept++]);
  }
  mark_lines_uncertain(space, result);
  Resync resync(space, unwinder, stack, is_cut);
  for (std::size_t last = kept; last-- > 0;) {
    for (const std::uint64_t cfa :
         frame_addresses(space, result.frames[last], last == 0 ? &innermost : nullptr, stack)) {
      auto resumption = resync.find(result.frames[last], cfa);
      if (!resumption) continue;
      result.frames.resize(last + 1);
      append(result, std::move(*resumption));
      return result;
    }
  }
  return result;
}

}  // namespace forksight::symbols
