#include "collect/load.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collect/join_look.hpp"
#include "collect/name_waits.hpp"
#include "collect/process_table.hpp"
#include "collect/run_log.hpp"
#include "collect/trace_budget.hpp"
#include "collect/trace_file.hpp"
#include "collect/trace_reader.hpp"
#include "files/dead_places.hpp"
#include "files/open_file.hpp"
#include "files/visit_files.hpp"

namespace forksight::collect {

namespace fs = std::filesystem;

namespace {

struct Evidence {
  std::vector<fs::path> traces;
  std::vector<fs::path> run_logs;
};

void search_folder(const fs::path& folder, Evidence& evidence, std::vector<std::string>& limits) {
  std::vector<std::string> unsearched = files::visit_files(folder, [&](const fs::path& path) {
    if (path.extension() == trace::kFileSuffix) evidence.traces.push_back(path);
    if (path.filename() == kRunLogFile) evidence.run_logs.push_back(path);
  });
  std::ranges::move(unsearched, std::back_inserter(limits));
}

// Sorts the files, so that their order is the same each time. Leaves one path for each file, because the user may name
// a file in several ways: twice, by two spellings (`run` and `./run`), through a link, or by a folder and by a path in
// this folder.
void keep_each_file_once(std::vector<fs::path>& files) {
  std::ranges::sort(files);
  std::set<std::pair<dev_t, ino_t>> seen;
  std::erase_if(files, [&](const fs::path& file) {
    struct stat status = {};
    // A file whose status cannot be read stays in the list, because the attempt to read the file reports the reason.
    return files::stat_living(file.string(), status) == 0 && !seen.emplace(status.st_dev, status.st_ino).second;
  });
}

// Reads the run logs, the smallest first, so that large files leave room for small ones. The results are in the order
// of `paths`.
std::vector<Result<RunLog>> read_run_logs(const std::vector<fs::path>& paths) {
  std::vector<std::pair<off_t, std::size_t>> by_size;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat status = {};
    by_size.emplace_back(files::stat_living(paths[i].string(), status) == 0 ? status.st_size : 0, i);
  }
  std::ranges::sort(by_size);
  std::vector<Result<RunLog>> logs(paths.size(), Error{});
  RunLogBudget budget(paths.size());
  for (const auto& [size, i] : by_size) {
    RunLogCosts costs{};
    logs[i] = read_run_log(paths[i], budget.most(), &of(costs, RunLogCost::kBytes));
    budget.count(logs[i] ? logs[i]->costs : costs);
  }
  return logs;
}

}  // namespace

Result<model::Model> load_run(const files::Reader& reader, const std::vector<fs::path>& paths,
                              const LoadOptions& options) {
  model::Model model;
  Evidence evidence;
  for (const fs::path& path : paths) {
    struct stat status = {};
    if (files::stat_living(path.string(), status) != 0) {
      const bool is_missing = errno == ENOENT || errno == ENOTDIR;
      if (!is_missing) return Error{fmt::format("{}: {}", path.string(), files::reason_of(errno))};
      return Error{fmt::format("{}: no such file or folder; `forksight run` leaves no folder if it recorded nothing",
                               path.string())};
    }
    if (!S_ISDIR(status.st_mode)) {
      evidence.traces.push_back(path);
      continue;
    }
    const std::size_t files_before = evidence.traces.size() + evidence.run_logs.size();
    const std::size_t limits_before = model.limits.size();
    search_folder(path, evidence, model.limits);
    const bool is_searched = model.limits.size() == limits_before;
    if (is_searched && evidence.traces.size() + evidence.run_logs.size() == files_before) {
      return Error{fmt::format("{}: no *{} and no {} in it; name the folder that `forksight run` wrote", path.string(),
                               trace::kFileSuffix, kRunLogFile)};
    }
  }
  if (evidence.traces.empty() && evidence.run_logs.empty() && !model.limits.empty()) return Error{model.limits.front()};
  keep_each_file_once(evidence.traces);
  keep_each_file_once(evidence.run_logs);

  ProcessTable processes(model);
  TraceBudget budget;
  std::string first_error;
  std::size_t unreadable = 0;
  for (std::size_t i = 0; i < evidence.traces.size(); ++i) {
    if (options.progress) options.progress(i, evidence.traces.size());
    const Result<TraceFile> file = TraceFile::read(reader, evidence.traces[i]);
    if (!file) {
      if (unreadable++ == 0) first_error = file.error();
      model.limits.push_back(file.error());
      continue;
    }
    budget.begin_file(file.value().disk_bytes());
    TraceReader(file.value(), model, processes, options.symbolize, &budget).read();
    budget.end_file();
  }
  processes.end_earlier_images();
  if (options.progress) options.progress(evidence.traces.size(), evidence.traces.size());
  std::optional<files::Owner> owner;  // the owner of all run logs; the user "nobody" if several users own them
  for (Result<RunLog>& log : read_run_logs(evidence.run_logs)) {
    if (log) {
      if (owner && owner->uid != log->owner.uid) log->owner = {};
      owner = log->owner;
      merge_run_log(model, std::move(log).value());
      continue;
    }
    if (unreadable++ == 0) first_error = log.error();
    model.limits.push_back(log.error());
  }
  if (unreadable > 0 && unreadable == evidence.traces.size() + evidence.run_logs.size()) return Error{first_error};
  if (options.symbolize) name_waits(owner.value_or(files::Owner{}), model);
  join_look(model);
  return model;
}

}  // namespace forksight::collect
