#include "diagnose/cuda_ipc.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace forksight::cuda {

namespace {

using model::CudaIpcKind;

bool has_succeeded(const IpcCall& call) { return call.ended_ns != 0 && call.result == 0; }

// If a call never returned, it may have done its work nevertheless.
bool may_have_succeeded(const IpcCall& call) { return call.ended_ns == 0 || call.result == 0; }

}  // namespace

template <class IsOver>
std::optional<std::size_t> Sharing::OfHandle::find_first(std::uint64_t at_ns, const IsOver& is_over) const {
  if (at_ns < latest_ns) over = 0;
  latest_ns = at_ns;
  while (over < all.size() && is_over(all[over])) ++over;
  return over == all.size() ? std::nullopt : std::optional(over);
}

Sharing::Sharing(const Evidence& evidence) : evidence_(evidence) {
  std::vector<const IpcCall*> calls;
  for (const IpcCall& call : evidence.model().cuda_ipc) calls.push_back(&call);
  std::ranges::stable_sort(calls, {}, &IpcCall::began_ns);
  using Place = std::pair<model::ProcessId, std::uint64_t>;  // a process, and an address in its memory
  struct Opened {
    std::size_t import;
    std::uint64_t times;
  };
  std::map<Place, std::size_t> exported;
  std::map<Place, Opened> opened;
  for (const IpcCall* call : calls) {
    const Place place{call->process, call->address};
    std::uint64_t& last = last_act_[call->process];
    last = std::max({last, call->began_ns, call->ended_ns, call->used_ns});
    switch (call->kind) {
      case CudaIpcKind::kExport:
        exported[place] = exports_.size();
        exports_by_handle_[{evidence.process(call->process).host, call->handle}].all.push_back(exports_.size());
        exports_.push_back({call, nullptr});
        break;
      case CudaIpcKind::kFree:
        if (const auto known = exported.find(place); known != exported.end() && may_have_succeeded(*call)) {
          exports_[known->second].freed = call;
        }
        break;
      case CudaIpcKind::kOpen:
        if (!has_succeeded(*call)) {
          if (call->ended_ns != 0) refused_.push_back(call);
        } else if (const auto [known, is_new] = opened.try_emplace(place, Opened{imports_.size(), 1}); is_new) {
          imports_by_handle_[{call->process, call->handle}].all.push_back(imports_.size());
          imports_.push_back({call, nullptr, nullptr});
        } else {
          ++known->second.times;
        }
        break;
      case CudaIpcKind::kClose:
        if (const auto known = opened.find(place); known != opened.end() && may_have_succeeded(*call)) {
          if (--known->second.times != 0) break;
          imports_[known->second.import].close = call;
          opened.erase(known);
        }
        break;
      case CudaIpcKind::kContextGone:
        // A context of the process is gone. All memory that the process had open now counts as closed. Some of this
        // memory may still be open. forksight then reports nothing about that memory.
        for (auto entry = opened.lower_bound({call->process, 0});
             entry != opened.end() && entry->first.first == call->process; entry = opened.erase(entry)) {
          imports_[entry->second.import].close = call;
        }
        break;
      case CudaIpcKind::kEnd: own_end_.emplace(call->process, call->began_ns); break;
    }
  }
  for (Import& import : imports_) import.of = find_export(*import.open);
}

// The exports of a handle are in the order in which they began. So the first export that was not freed is the answer,
// or there is none.
const Export* Sharing::find_export(const IpcCall& opened) const {
  const auto found = exports_by_handle_.find({evidence_.process(opened.process).host, opened.handle});
  if (found == exports_by_handle_.end()) return nullptr;
  const auto is_freed = [&](std::size_t index) {
    const IpcCall* const freed = exports_[index].freed;
    return freed != nullptr && freed->began_ns < opened.began_ns;
  };
  const std::optional<std::size_t> first = found->second.find_first(opened.began_ns, is_freed);
  if (!first) return nullptr;
  const Export& one = exports_[found->second.all[*first]];
  return one.call->began_ns < opened.ended_ns ? &one : nullptr;
}

const Import* Sharing::find_open(model::ProcessId process, std::uint64_t handle, std::uint64_t at_ns) const {
  const auto found = imports_by_handle_.find({process, handle});
  if (found == imports_by_handle_.end()) return nullptr;
  const auto is_closed = [&](std::size_t index) {
    const IpcCall* const close = imports_[index].close;
    return close != nullptr && close->began_ns <= at_ns;
  };
  const std::optional<std::size_t> first = found->second.find_first(at_ns, is_closed);
  if (!first) return nullptr;
  const std::vector<std::size_t>& all = found->second.all;
  for (std::size_t at = *first; at < all.size() && imports_[all[at]].open->began_ns <= at_ns; ++at) {
    evidence_.check_time();
    if (is_open_at(imports_[all[at]], at_ns)) return &imports_[all[at]];
  }
  return nullptr;
}

bool Sharing::was_alive_after(model::ProcessId process, std::uint64_t at_ns) const {
  const auto known = last_act_.find(process);
  return known != last_act_.end() && known->second > at_ns;
}

std::uint64_t Sharing::end_of(model::ProcessId process) const {
  const auto known = own_end_.find(process);
  return known != own_end_.end() ? known->second : evidence_.process(process).seen_ended_ns;
}

bool is_open_at(const Import& import, std::uint64_t at_ns) {
  return import.open->ended_ns <= at_ns && (import.close == nullptr || import.close->began_ns > at_ns);
}

Culprit describe_memory(const Evidence& evidence, const Export& exported) {
  Culprit culprit;
  culprit.kind = CulpritKind::kMemory;
  culprit.name = "device memory of another process";
  culprit.address = exported.call->address;
  Holder holder;
  holder.pid = evidence.process(exported.call->process).pid;
  holder.tid = exported.call->tid;
  culprit.holder = std::move(holder);
  culprit.stack = exported.call->stack;
  return culprit;
}

Finding begin_finding(const char* slug, const IpcCall& call) {
  Finding finding;
  finding.rule = slug;
  finding.process = call.process;
  finding.processes = {call.process};
  finding.tid = call.tid;
  finding.stack = call.stack;
  return finding;
}

}  // namespace forksight::cuda
