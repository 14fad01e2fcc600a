#include "symbols/call_graph.hpp"

#include <algorithm>
#include <string_view>

namespace forksight::symbols {
namespace {

constexpr int kMaxJumps = 3;  // the most jumps in a row; a wrapper that tail-calls another wrapper needs two

std::optional<Function> function_named(const Function& where, const char* name) {
  const Symbol* symbol = where.binary->symbols().find_function_named(name);
  if (symbol == nullptr) return std::nullopt;
  const auto range = where.binary->code().function_at(symbol->start);
  if (!range || range->start != symbol->start) return std::nullopt;
  return Function{where.module, where.binary, *range};
}

Link leads_into(const Function& from, const Branch& branch, const Function& to, int jumps) {
  if (branch.name == nullptr && from.binary == to.binary && to.range.contains(branch.target)) return Link::kProved;
  Link answer = Link::kRefuted;
  for (const Function& callee : resolve_branch(from, branch, to)) {
    if (callee == to) return Link::kProved;
    if (jumps == 0) continue;
    const CodeFacts& facts = callee.binary->code().facts(callee.range);
    if (facts.is_thunk) answer = Link::kPossible;
    for (const Branch& jump : facts.branches) {
      if (jump.is_call) continue;
      const Link link = leads_into(callee, jump, to, jumps - 1);
      if (link == Link::kProved) return link;
      if (link == Link::kPossible) answer = link;
    }
  }
  return answer;
}

}  // namespace

bool handles_errors(std::string_view name) {
  // Functions of libstdc++ have mangled names, for example "_ZSt20__throw_length_errorPKc". Functions of the C++ ABI
  // have plain names, for example "__cxa_throw".
  constexpr std::string_view kBegins[] = {"_Unwind_",
                                          "_ZSt9terminate",
                                          "_ZSt10unexpected",
                                          "_ZSt17rethrow_exception",
                                          "__cxa_allocate_exception",
                                          "__cxa_bad_",
                                          "__cxa_begin_catch",
                                          "__cxa_call_",
                                          "__cxa_deleted_virtual",
                                          "__cxa_end_catch",
                                          "__cxa_free_exception",
                                          "__cxa_pure_virtual",
                                          "__cxa_rethrow",
                                          "__cxa_throw",
                                          "__clang_call_terminate"};
  if (std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); })) return true;
  if (name.starts_with("_ZSt") && name.find("__throw_") != std::string_view::npos) return true;
  return name == "abort" || name.starts_with("__stack_chk_fail");
}

bool ends_after(const Function& function, std::uint64_t address) {
  const CodeFacts& facts = function.binary->code().facts(function.range);
  for (const std::uint64_t call : facts.pointer_calls) {
    if (call > address) return false;
  }
  for (const Branch& branch : facts.branches) {
    if (!branch.is_call || branch.end <= address) continue;
    const Symbol* symbol = branch.name == nullptr ? function.binary->symbols().find_function(branch.target) : nullptr;
    const char* name = symbol != nullptr ? symbol->name : branch.name;
    if (name == nullptr || !handles_errors(name)) return false;
  }
  return true;
}

std::vector<std::uint64_t> frame_depths(const Function& function, std::uint64_t call_end) {
  Cfi& cfi = function.binary->cfi();
  if (const auto depth = cfi.stack_depth(call_end - 1)) return {*depth};
  const auto bytes = function.binary->elf().bytes_at(function.range.start);
  const std::uint64_t size = std::min<std::uint64_t>(bytes.size(), function.range.end - function.range.start);
  const auto subtracted = prologue_subtraction(bytes.first(size));
  if (!subtracted) return {};
  // A function may save registers by pushes. Then its frame has the subtracted bytes and the pushed bytes. Another
  // function stores the registers into the subtracted bytes. The code is not examined for this difference, so both sums
  // are returned.
  constexpr std::uint64_t kFrameLinkBytes = 16;
  const std::uint64_t saved = cfi.saved_bytes(call_end - 1);
  if (saved <= kFrameLinkBytes) return {kFrameLinkBytes + *subtracted};
  return {saved + *subtracted, kFrameLinkBytes + *subtracted};
}

bool is_same_line(const Function& function, std::uint64_t call_end, std::uint64_t other_call_end) {
  const int line = function.binary->frames_at(call_end - 1).back().line;
  return line != 0 && line == function.binary->frames_at(other_call_end - 1).back().line;
}

std::optional<Function> function_of(AddressSpace& space, const RawFrame& frame) {
  const AddressSpace::Place place = space.locate(frame.lookup_address());
  if (!place) return std::nullopt;
  const auto range = place.binary->code().function_at(place.address);
  if (!range) return std::nullopt;
  return Function{place.module, place.binary, *range};
}

std::vector<Function> resolve_branch(const Function& from, const Branch& branch, const Function& other) {
  std::vector<Function> functions;
  if (branch.name == nullptr) {
    const auto range = from.binary->code().function_at(branch.target);
    if (range && range->start == branch.target) functions.push_back({from.module, from.binary, *range});
    return functions;
  }
  if (const auto function = function_named(from, branch.name)) functions.push_back(*function);
  if (other.binary != from.binary) {
    if (const auto function = function_named(other, branch.name)) functions.push_back(*function);
  }
  return functions;
}

Link leads_into(const Function& from, const Branch& branch, const Function& to) {
  return leads_into(from, branch, to, kMaxJumps);
}

Link check_link(AddressSpace& space, const RawFrame& callee, const RawFrame& caller) {
  if (caller.is_exact || callee.is_exact) return Link::kPossible;
  const auto inner = function_of(space, callee);
  const auto outer = function_of(space, caller);
  if (!inner || !outer) return Link::kPossible;
  const auto call = outer->binary->code().call_before(caller.pc - outer->module->bias);
  if (!call) return Link::kPossible;
  return leads_into(*outer, *call, *inner);
}

}  // namespace forksight::symbols
