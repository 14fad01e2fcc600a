#include "session/outside_file.hpp"

#include <fmt/core.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "files/budgets.hpp"
#include "files/open_file.hpp"
#include "files/replace_file.hpp"
#include "files/visit_files.hpp"
#include "render/findings_json.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = "forksight-outside/2";

}  // namespace

std::string outside_to_json(const std::vector<KeptFinding>& kept) {
  render::ToldFindings told;
  for (const KeptFinding& one : kept) {
    Finding& finding = told.findings.emplace_back(one.finding);
    finding.process = told.processes.size();
    finding.processes.clear();
    for (const model::Process& process : one.processes) {
      finding.processes.push_back(told.processes.size());
      told.processes.push_back(process);
    }
  }
  return render::tell_findings(kSchema, told);
}

Result<std::vector<KeptFinding>> parse_outside(std::string_view text) {
  auto told = render::read_findings(kSchema, text);
  if (!told) return Error{told.error()};
  std::vector<KeptFinding> all;
  for (Finding& finding : told->findings) {
    KeptFinding& kept = all.emplace_back();
    for (const model::ProcessId id : finding.processes) kept.processes.push_back(told->processes[id]);
    kept.finding = std::move(finding);
  }
  return all;
}

std::string write_outside(const fs::path& folder, const std::vector<KeptFinding>& kept, int fd) {
  const fs::path file = folder / kOutsideFile;
  // The umask removes bits from 0666, as it does for every file that the user makes.
  const std::string problem = fd < 0 ? files::replace_file(file.string(), outside_to_json(kept), 0666)
                                     : files::replace_file(fd, kOutsideFile, outside_to_json(kept), 0666);
  return problem.empty() ? "" : fmt::format("{}: cannot be written: {}", file.string(), problem);
}

std::vector<KeptFinding> read_outside(const files::Reader& /*reader*/, const std::vector<fs::path>& folders,
                                      std::vector<std::string>& limits) {
  std::vector<KeptFinding> all;
  const auto add = [&](const fs::path& file) {
    const auto content = files::read_text(file.string(), files::kMaxOutsideBytes);
    if (!content) {
      limits.push_back(content.error());
      return;
    }
    auto kept = parse_outside(content->text);
    if (!kept) {
      limits.push_back(fmt::format("{}: {}", file.string(), kept.error()));
      return;
    }
    std::move(kept->begin(), kept->end(), std::back_inserter(all));
  };
  for (const fs::path& folder : folders) {
    // load_run() has reported the folders that cannot be searched.
    (void)files::visit_files(folder, [&](const fs::path& path) {
      if (path.filename() == kOutsideFile) add(path);
    });
  }
  return all;
}

}  // namespace forksight
