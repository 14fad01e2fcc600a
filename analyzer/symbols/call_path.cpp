#include "symbols/call_path.hpp"

namespace forksight::symbols {
namespace {

constexpr std::size_t kMaxCalls = 5;

class Search {
 public:
  Search(const PathQuery& query, std::size_t& budget) : query_(query), budget_(budget) {}

  // Examines all paths of at most `calls` calls.
  void run(std::size_t calls) { visit(query_.from, query_.from_cfa, calls, true); }

  const std::optional<CallPath>& exact() const { return exact_; }
  const std::optional<CallPath>& inexact() const { return inexact_; }

 private:
  void visit(const Function& function, std::optional<std::uint64_t> cfa, std::size_t calls_left, bool is_first);
  // Returns the possible values of rsp during the call whose instruction ends at `call_end`; empty if they are not
  // known.
  std::vector<std::uint64_t> sp_at_call(const Function& function, std::uint64_t call_end,
                                        std::optional<std::uint64_t> cfa, bool is_first) const;
  void follow(const Function& function, const Branch& branch, std::optional<std::uint64_t> sp, std::size_t calls_left);
  void keep(bool is_exact);

  const PathQuery& query_;
  std::size_t& budget_;
  std::vector<CallSite> path_;
  std::optional<CallPath> exact_;
  std::optional<CallPath> inexact_;
};

std::vector<std::uint64_t> Search::sp_at_call(const Function& function, std::uint64_t call_end,
                                              std::optional<std::uint64_t> cfa, bool is_first) const {
  // In a function with a frame pointer, rsp is usually the same at all calls. So the rsp of the known call is taken.
  if (is_first && !function.binary->cfi().stack_depth(call_end - 1)) return {query_.from_sp};
  std::vector<std::uint64_t> places;
  if (!cfa) return places;
  for (const std::uint64_t depth : frame_depths(function, call_end)) places.push_back(*cfa - depth);
  return places;
}

void Search::keep(bool is_exact) {
  std::optional<CallPath>& kept = is_exact ? exact_ : inexact_;
  if (!kept) {
    kept = CallPath{path_, is_exact};
    return;
  }
  std::vector<CallSite>& sites = kept->sites;
  std::size_t i = 0;
  for (; i < sites.size() && i < path_.size() && sites[i].function == path_[i].function; ++i) {
    const std::uint64_t bias = path_[i].function.module->bias;
    if (sites[i].return_address != path_[i].return_address &&
        !is_same_line(path_[i].function, sites[i].return_address - bias, path_[i].return_address - bias)) {
      sites[i].is_ambiguous = true;
    }
  }
  if (i < sites.size()) sites.resize(i);
}

void Search::follow(const Function& function, const Branch& branch, std::optional<std::uint64_t> sp,
                    std::size_t calls_left) {
  if (sp && *sp < query_.goal_cfa) return;
  if (branch.is_call) path_.push_back({function, function.module->bias + branch.end, sp.value_or(0), false});
  for (const Function& callee : resolve_branch(function, branch, query_.goal)) {
    if (callee == query_.goal) {
      if (!path_.empty() && (!sp || *sp == query_.goal_cfa)) keep(sp.has_value());
    } else if (calls_left > 1) {
      visit(callee, sp, calls_left - 1, false);
    }
  }
  if (branch.is_call) path_.pop_back();
}

void Search::visit(const Function& function, std::optional<std::uint64_t> cfa, std::size_t calls_left, bool is_first) {
  if (budget_ == 0) return;
  --budget_;
  for (const Branch& branch : function.binary->code().facts(function.range).branches) {
    if (!branch.is_call) {
      // If a function ends with a jump, the frame of the next function replaces its frame. The first function is still
      // on the stack, so it did not end with a jump.
      if (!is_first) follow(function, branch, cfa, calls_left);
      continue;
    }
    const std::vector<std::uint64_t> places = sp_at_call(function, branch.end, cfa, is_first);
    if (places.empty()) follow(function, branch, std::nullopt, calls_left);
    for (const std::uint64_t sp : places) follow(function, branch, sp, calls_left);
  }
}

}  // namespace

std::optional<CallPath> find_call_path(const PathQuery& query, std::size_t& budget) {
  std::optional<CallPath> inexact;
  for (std::size_t calls = 1; calls <= kMaxCalls && budget > 0; ++calls) {
    Search search(query, budget);
    search.run(calls);
    if (search.exact()) return search.exact();
    if (!inexact) inexact = search.inexact();
  }
  return inexact;
}

}  // namespace forksight::symbols
