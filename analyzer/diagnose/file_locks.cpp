#include "diagnose/file_locks.hpp"

#include <fmt/core.h>

#include "diagnose/words.hpp"

namespace forksight::file_locks {

std::string name_file(const model::FileLockUse& use) {
  return use.path.empty() ? fmt::format("file descriptor {}", use.fd) : use.path;
}

std::string name_range(const model::FileLockUse& use) {
  if (use.bytes == 0) return use.start == 0 ? "all bytes" : fmt::format("all bytes from {}", use.start);
  return use.bytes == 1 ? fmt::format("byte {}", use.start)
                        : fmt::format("bytes {} to {}", use.start, use.start + use.bytes - 1);
}

Finding begin_finding(const Evidence& evidence, const char* slug, const model::FileLockUse& use) {
  const model::Fork& fork = evidence.model().forks[use.fork];
  Finding finding;
  finding.rule = slug;
  finding.outcome = Outcome::kCorruption;
  finding.process = use.process;
  finding.processes = {use.process};
  finding.tid = use.tid;
  finding.stack = use.stack;
  finding.fork = evidence.fork_site(fork);
  finding.culprit.kind = CulpritKind::kFileLock;
  finding.culprit.name = fmt::format("lock of {}", words::base_name(name_file(use)));
  finding.culprit.stack = use.taken_at;
  finding.culprit.holder = Holder{};
  finding.culprit.holder->pid = use.owner;
  finding.culprit.holder->tid = use.owner;
  return finding;
}

}  // namespace forksight::file_locks
