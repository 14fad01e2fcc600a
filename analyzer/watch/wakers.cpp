#include "watch/wakers.hpp"

#include <unistd.h>

#include "watch/proc_fs.hpp"
#include "watch/sampler.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {
namespace {

constexpr int kScanShare = 250;  // of the time, one part may go into scans

}  // namespace

WakerFinder::WakerFinder() {
  for (const std::int32_t fd : list_numbers("/proc/self/fd").numbers) {
    if (const std::uint64_t inode = find_pipe(::getpid(), fd); inode != 0) outside_.insert(inode);
  }
}

WakerFinder::Answer WakerFinder::find(std::int32_t pid, const ThreadSample& thread, const Tree& tree, bool thorough,
                                      WaitFacts& facts) {
  Answer answer = Answer::kNotAsked;
  facts.wakers.clear();
  switch (classify(thread).kind) {
    case WaitClass::kChild: answer = find_children(pid, thread, tree, thorough, facts); break;
    case WaitClass::kPipeRead:
    case WaitClass::kPipeWrite: answer = find_pipe_ends(thread, facts); break;
    default: break;
  }
  facts.wakers_known = answer == Answer::kKnown;
  return answer;
}

WakerFinder::Answer WakerFinder::find_children(std::int32_t pid, const ThreadSample& thread, const Tree& tree,
                                               bool thorough, WaitFacts& facts) const {
  const WaitTarget target = classify(thread);
  std::int64_t child = target.child;
  if (target.pidfd >= 0) {
    const auto resolved = resolve_pidfd(thread.tid, target.pidfd);
    if (!resolved) return Answer::kUnknown;
    child = *resolved;
  }
  if (child > 0) {
    facts.wakers.push_back({static_cast<std::int32_t>(child), "wait4"});
    return Answer::kKnown;
  }
  if (thorough) {
    for (const std::int32_t any : read_children(pid)) facts.wakers.push_back({any, "wait4"});
    // A tracer waits for what it traces, whoever's child that is.
    for (const auto& [other, member] : tree.living()) {
      const auto status = parse_status(read_file(proc_path(other, "status")).text);
      if (status && status->tracer == pid) facts.wakers.push_back({other, "wait4"});
    }
  } else {
    for (const auto& [other, member] : tree.living()) {
      if (member.ppid == pid) facts.wakers.push_back({other, "wait4"});
    }
  }
  // No child, and yet it waits: whatever that means, it is not understood.
  return facts.wakers.empty() ? Answer::kUnknown : Answer::kKnown;
}

WakerFinder::Answer WakerFinder::find_pipe_ends(const ThreadSample& thread, WaitFacts& facts) {
  const WaitTarget target = classify(thread);
  const std::uint64_t inode = find_pipe(thread.tid, target.fd);
  if (inode == 0 || outside_.contains(inode)) return Answer::kUnknown;
  if (!scanned_.contains(inode)) {
    unscanned_.insert(inode);
    return Answer::kNeedsScan;
  }
  if (refused_) return Answer::kUnknown;
  for (const PipeHolder& holder : holders_) {
    if (holder.inode != inode) continue;
    const bool could = target.kind == WaitClass::kPipeRead ? holder.writes : holder.reads;
    if (could) facts.wakers.push_back({holder.pid, "pipe"});
  }
  // A reader without writers gets end of file, a writer without readers EPIPE: both return.
  return facts.wakers.empty() ? Answer::kUnknown : Answer::kKnown;
}

void WakerFinder::scan(const Tree& tree) {
  const auto start = Clock::now();
  scanned_.insert(unscanned_.begin(), unscanned_.end());
  unscanned_.clear();
  std::set<std::int32_t> must_read;
  for (const auto& [pid, member] : tree.living()) must_read.insert(pid);
  std::set<std::int32_t> refused;
  holders_ = find_holders(scanned_, must_read, refused);
  refused_ = !refused.empty();
  // Pipes that nobody holds any more need not be asked for again.
  std::set<std::uint64_t> alive;
  for (const PipeHolder& holder : holders_) alive.insert(holder.inode);
  scanned_ = std::move(alive);
  next_scan_ = Clock::now() + (Clock::now() - start) * kScanShare;
}

}  // namespace forksight::watch
