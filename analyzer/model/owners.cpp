#include "model/owners.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <string>

#include "forksight/trace/handlers.hpp"
#include "model/base_name.hpp"
#include "model/model.hpp"

namespace forksight::model {

namespace {

constexpr std::array kOwners{
#define FORKSIGHT_OWNER(id, key, name, libraries, starts, frames, at_fork, measured, fix) \
  OwnerInfo{Owner::id, key, name, libraries, starts, frames, PoolAtFork::at_fork, measured, fix},
#include "model/owners.def"
};

constexpr OwnerInfo kNobody{Owner::kUnknown,
                            "unknown",
                            "the program",
                            "",
                            "",
                            "",
                            PoolAtFork::kLost,
                            "",
                            "Start the threads anew in the child (pthread_atfork() child handler), or fork before they "
                            "are started."};

constexpr const char* kGeneral =
#define FORKSIGHT_GENERAL(libraries) libraries
#include "model/owners.def"
    ;

// True if one of `patterns`, which are separated by '|', matches `text`.
bool matches(std::string_view patterns, std::string_view text) {
  if (text.empty()) return false;
  const std::string subject(text);
  while (!patterns.empty()) {
    const std::size_t bar = patterns.find('|');
    const std::string pattern(patterns.substr(0, bar));
    if (::fnmatch(pattern.c_str(), subject.c_str(), 0) == 0) return true;
    patterns = bar == std::string_view::npos ? std::string_view() : patterns.substr(bar + 1);
  }
  return false;
}

bool is_general(std::string_view path) { return matches(kGeneral, base_name(path)); }

Owner find_owner_of_function(const std::string& function) {
  for (const OwnerInfo& info : kOwners) {
    if (matches(info.frames, function)) return info.owner;
  }
  return Owner::kUnknown;
}

bool has_child_handler(std::span<const AtforkHandlers> handlers, std::string_view library) {
  constexpr std::size_t kChild = 2;  // the index of the phase
  return handlers.size() >= trace::kMaxListedHandlers || std::ranges::any_of(handlers, [&](const AtforkHandlers& one) {
           return one.has[kChild] && one.library == library;
         });
}

}  // namespace

std::span<const OwnerInfo> all_owners() { return kOwners; }

const OwnerInfo& info_of(Owner owner) {
  return owner == Owner::kUnknown ? kNobody : kOwners[static_cast<std::size_t>(owner)];
}

bool spins_for_team(Owner owner) { return owner == Owner::kOpenblas || owner == Owner::kBlis; }

std::string_view find_owning_library(const Thread& thread) {
  if (!is_general(thread.start_library)) return thread.start_library;
  for (const Frame& frame : thread.created_at.frames) {
    if (!frame.module.empty() && !is_general(frame.module)) return frame.module;
  }
  return thread.start_library;
}

Owner find_owner_of_library(std::string_view path) {
  for (const OwnerInfo& info : kOwners) {
    if (matches(info.libraries, base_name(path))) return info.owner;
  }
  return Owner::kUnknown;
}

Owner find_owner(const Thread& thread) { return find_owner(thread, {}); }

Owner find_owner(const Thread& thread, const Stack& runs) {
  const std::string_view library = base_name(find_owning_library(thread));
  for (const OwnerInfo& info : kOwners) {
    const bool is_it = matches(info.libraries, library) || matches(info.starts, thread.start_routine);
    if (is_it && info.owner != Owner::kStdThread) return info.owner;
  }
  // The stack that created the thread is searched from the innermost frame, because the owner is the code closest to
  // the call that made the thread. The thread's own stack is searched from the outermost frame. There the owner's loop
  // is found before the work that the loop calls.
  for (const Frame& frame : thread.created_at.frames) {
    if (const Owner owner = find_owner_of_function(frame.function); owner != Owner::kUnknown) return owner;
  }
  for (auto frame = runs.frames.rbegin(); frame != runs.frames.rend(); ++frame) {
    if (const Owner owner = find_owner_of_function(frame->function); owner != Owner::kUnknown) return owner;
  }
  if (is_general(thread.start_library) && thread.created_at.frames.empty()) {
    const auto outer = std::find_if_not(runs.frames.rbegin(), runs.frames.rend(),
                                        [](const Frame& frame) { return is_general(frame.module); });
    const Owner owner = outer == runs.frames.rend() ? Owner::kUnknown : find_owner_of_library(outer->module);
    if (owner != Owner::kUnknown) return owner;
  }
  if (matches(info_of(Owner::kStdThread).starts, thread.start_routine)) return Owner::kStdThread;
  // If no frame matches a line of the table, the thread belongs to the general library that has its start routine.
  return find_owner_of_library(thread.start_library);
}

PoolState find_pool_state(const ThreadPool& pool, const Fork& fork, std::span<const AtforkHandlers> handlers) {
  if (pool.threads.empty()) return PoolState::kHandled;
  switch (info_of(pool.owner).at_fork) {
    case PoolAtFork::kRebuilds: return PoolState::kRebuilds;
    case PoolAtFork::kRebuildsByHandler:
      return fork.is_inferred || has_child_handler(handlers, pool.library) ? PoolState::kRebuilds : PoolState::kLost;
    case PoolAtFork::kUnneeded: return PoolState::kHandled;
    case PoolAtFork::kHandles: return fork.is_inferred ? PoolState::kHandled : PoolState::kLost;
    case PoolAtFork::kLost: break;
  }
  return PoolState::kLost;
}

}  // namespace forksight::model
