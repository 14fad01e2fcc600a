// The run log, run.json: what `forksight run` saw of a process tree from outside. The file is in the folder of the run,
// beside the traces. It lets `forksight report` tell later what `run` found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/run_log_budget.hpp"
#include "files/open_file.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::collect {

inline constexpr char kRunLogSchema[] = "forksight-run/1";
inline constexpr char kRunLogFile[] = "run.json";

struct LoggedProcess {
  std::int32_t pid = 0;
  std::int32_t ppid = 0;
  std::uint64_t start_ticks = 0;
  std::string comm;
  std::string exe;
  std::vector<std::string> cmdline;
  model::Liveness liveness = model::Liveness::kUnknown;
  std::uint64_t stuck_for_ms = 0;
  std::vector<model::Wait> waits;
  std::int32_t waits_for_pid = 0;  // 0: the process waits for no process
  std::uint64_t waits_for_start_ticks = 0;
  std::string waits_via;
  std::optional<int> exit_status;     // as wait(2) returns it
  std::uint64_t unheard_signals = 0;  // as in model::Process
  std::uint64_t unheard_for_ms = 0;
  std::vector<std::string> ways_out;     // as in model::Process
  bool may_be_timed_out = false;         // as in model::Process
  bool never_had_other_threads = false;  // as in model::Process
  bool killed_by_run = false;
  bool is_unreadable = false;               // as in model::Process
  std::vector<std::int32_t> went_on;        // tids of threads that seemed stuck and have gone on since
  std::optional<std::uint64_t> shim_start;  // where the shim was mapped; 0: nowhere; nullopt: not read
};

// The end of a process. `gone_ns`: when `run` noticed it (CLOCK_MONOTONIC).
struct LoggedEnd {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  // 0: not known
  std::uint64_t gone_ns = 0;
};

struct RunLog {
  files::Owner owner;  // the owner of the file from which the log was read
  std::vector<std::string> command;
  std::string started_at;  // ISO 8601 with the offset from UTC
  std::string host;
  std::vector<LoggedProcess> processes;
  std::vector<LoggedEnd> ends;  // only the ends whose time a rule compares
  std::vector<std::string> limits;
  RunLogCosts costs{};  // what reading the log took
};

std::string to_json(const RunLog& log);

// The text is hostile input: sizes, types and ranges are checked, and unknown names are errors. A log that has more
// than `most` is an error.
Result<RunLog> parse_run_log(std::string_view text, const RunLogCosts& most = largest_run_log());
// `bytes`: receives the number of bytes that were read, even if the log is an error; null: not needed.
Result<RunLog> read_run_log(const std::filesystem::path& file, const RunLogCosts& most = largest_run_log(),
                            std::size_t* bytes = nullptr);

// Replaces run.json in `folder` by rename. So a reader sees either the old file or the complete new file. `fd`: a
// descriptor of the folder, which is used instead of the path; -1: there is none.
Result<std::filesystem::path> write_run_log(const std::filesystem::path& folder, const RunLog& log, int fd = -1);

// Adds the facts of the log to the model. A logged process and a process of the model are the same if host, pid and
// start time agree. A host or start time that is not known agrees with every value. Adds the processes that no trace
// has. If the same log is merged twice, the second merge changes nothing.
void merge_run_log(model::Model& model, RunLog log);

}  // namespace forksight::collect
