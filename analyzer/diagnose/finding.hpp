// What a rule reports. The code that prints findings adds no facts to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight {

enum class Certainty { kUnknown, kPossible, kLikely, kProven };  // in rising order, because --fail-on compares them
enum class Outcome { kHang, kMayHang, kError, kCorruption, kCured };

// How a call of the program ended, and how certain the harm is.
struct CallEnd {
  Certainty harm = Certainty::kProven;
  Outcome outcome = Outcome::kHang;
};

enum class CulpritKind {
  kLock,
  kPool,
  kThread,
  kHandler,
  kPipe,
  kFileLock,
  kProcess,
  kDevice,
  kStream,
  kMemory,
  kTimer
};

struct Holder {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::string name;
  std::string library;  // the library of the start routine
  std::string start_routine;
  std::string owner;   // named as in owners.def: "openblas", "unknown"
  bool alive = false;  // false for a lost thread; true for a thread that still exists, in any process
};

struct Culprit {
  CulpritKind kind = CulpritKind::kLock;
  std::string name;  // "cache_mu (std::mutex)", "libgomp pool of 2 threads"
  std::string library;
  std::uint64_t address = 0;
  std::optional<Holder> holder;
  // The holder does not hold the object, but waits on it. This is so for condition variables and barriers.
  bool is_waited_for = false;
  // where the object was acquired or made, unless `is_at_fork` or `is_now` is set
  model::Stack stack;
  bool is_at_fork = false;  // `stack` is where the holder was at the fork, because nothing better is known
  bool is_now = false;      // `stack` is where the holder is now, and the holder still holds the object
};

struct Fix {
  std::string text;
  bool verified = false;  // the hazard suite tests this fix for this rule
};

struct Victim {
  std::int32_t pid = 0;
  std::string via;  // "wait4", "pipe" ...
};

struct ForkSite {
  std::int32_t pid = 0;  // the parent
  std::int32_t child = 0;
  model::Stack stack;
};

// How probable the outcome is at one fork, as a range of probabilities from 0 to 1.
struct Chance {
  double low = 0;
  double high = 1;
};

struct Finding {
  std::string rule;  // the slug of the rule in rules.def
  // A finding makes two claims, and each has its own certainty. `harm` says how certain it is that `outcome` has
  // happened or will happen. `harm` is never kUnknown. `cause` says how certain it is that `culprit` is the reason. If
  // `cause` is kUnknown, the rule says only what the process waits for.
  Certainty harm = Certainty::kPossible;
  Certainty cause = Certainty::kUnknown;
  Outcome outcome = Outcome::kMayHang;
  std::optional<Chance> odds;  // for kMayHang: the probability at one fork, if it was measured
  std::string fingerprint;     // 16 hex digits, see fingerprint.hpp
  std::string summary;         // one line that can be understood alone in a log
  model::ProcessId process = 0;
  // All processes of this finding, and of the equal findings that were merged into it. The first one is `process`.
  std::vector<model::ProcessId> processes;
  std::int32_t tid = 0;
  std::string thread_name;
  Culprit culprit;
  model::Stack stack;  // the stack of the thread that hangs or fails
  std::optional<ForkSite> fork;
  std::vector<std::string> chain;  // from the symptom to the cause, one sentence each
  std::vector<Victim> victims;
  std::uint64_t more_victims = 0;  // how many further victims there are; another finding about the process lists them
  std::vector<Fix> fixes;          // verified ones first
  std::uint64_t count = 1;         // how many equal findings were merged into one, including this one
  // Only the wait suggests a hang, and something may still end the wait. An idle program looks the same.
  bool may_be_intended = false;
};

inline bool is_hang(const Finding& finding) {
  return finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang;
}

}  // namespace forksight
