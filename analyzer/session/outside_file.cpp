#include "session/outside_file.hpp"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "render/findings_json.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = "forksight-outside/2";
constexpr std::size_t kMaxBytes = 64U << 20U;

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

std::string write_outside(const fs::path& folder, const std::vector<KeptFinding>& kept) {
  const fs::path file = folder / kOutsideFile;
  const fs::path draft = folder / (std::string(kOutsideFile) + ".new");
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream << outside_to_json(kept);
  stream.close();
  std::error_code error;
  if (stream) fs::rename(draft, file, error);
  return stream && !error ? std::string() : fmt::format("{}: cannot be written", file.string());
}

std::vector<KeptFinding> read_outside(const std::vector<fs::path>& folders, std::vector<std::string>& limits) {
  std::vector<KeptFinding> all;
  const auto add = [&](const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string content;
    std::vector<char> piece(std::size_t{1} << 16U);
    while (content.size() <= kMaxBytes &&
           (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) || stream.gcount() > 0))
      content.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
    auto kept = parse_outside(content);
    if (!kept) {
      limits.push_back(fmt::format("{}: {}", file.string(), kept.error()));
      return;
    }
    std::move(kept->begin(), kept->end(), std::back_inserter(all));
  };
  for (const fs::path& folder : folders) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->path().filename() == kOutsideFile && entry->is_regular_file(ignored)) add(entry->path());
    }
  }
  return all;
}

}  // namespace forksight
