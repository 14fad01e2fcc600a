#include "suite/made_suite.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <tuple>

#include "render/findings_json.hpp"
#include "render/json.hpp"
#include "suite/views.hpp"

namespace forksight::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kSource[] = R"(// EXPECT-BARE: ok
// EXPECT: orphaned-mutex proven hang lock=m holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit inner@here outer@there
// EXPECT-CURED: --omp=rebuild stdout="child: 2 threads"
inner();  // MARK: here
outer();  // MARK: there
)";

// This script replaces forksight. It writes the report that belongs to its options, and then calls exec with the
// program, so its exit status is the status of the program.
constexpr char kStandIn[] = R"(
folder=$(dirname "$0")
case $1 in why|core) cat "$folder/$1.json"; exit 1 ;; esac
shift
cured=observed
while [ "$1" != -- ]; do
  case $1 in --omp=rebuild) cured=cured ;; --report) cp "$folder/$cured.json" "$2" ;; esac
  shift
done
shift
exec "$@"
)";

}  // namespace

Json good_finding() {
  Finding finding;
  finding.rule = "orphaned-mutex";
  finding.harm = finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kHang;
  finding.summary = "child 7 hangs";
  finding.processes = {0};
  finding.culprit.name = "m (mutex)";
  finding.culprit.library = "/x/case";
  finding.culprit.holder = Holder{1, 2, "worker", "/x/case", "worker_main(void*)", "unknown", false};
  for (const auto& [function, file, line] : {std::tuple{"std::mutex::lock()", "/usr/include/mutex", 9},
                                             {"inner(int)", "/src/case.c", 5},
                                             {"outer.isra.0", "/src/case.c", 6},
                                             {"main", "/src/case.c", 7}}) {
    model::Frame& frame = finding.culprit.stack.frames.emplace_back();
    frame.function = function;
    frame.file = file;
    frame.line = line;
  }
  finding.victims = {{1, "wait4"}};
  finding.fork.emplace();
  return Json::parse(
      render::json_text([&](render::JsonWriter& out) { render::write_finding(out, finding, {model::Process{}}); }));
}

Json changed(Json finding, const char* path, Json value) {
  finding[Json::json_pointer(path)] = std::move(value);
  const bool is_hang = finding["outcome"] == "hang" || finding["outcome"] == "may-hang";
  if (is_hang || !finding.contains("hang")) return finding;
  finding["harm"] = finding["hang"];
  finding.erase("hang");
  return finding;
}

Json report_of(std::vector<Json> findings) {
  const Json process = Json::parse(render::json_text([](render::JsonWriter& out) {
    out.begin_object();
    render::write_process_members(out, model::Process{});
    out.end_object();
  }));
  return {{"schema", render::kReportSchema}, {"processes", Json::array({process})}, {"findings", std::move(findings)}};
}

MadeSuite::MadeSuite() : source(kSource) {
  std::string place = (fs::temp_directory_path() / "forksight-made-suite-XXXXXX").string();
  if (::mkdtemp(place.data()) == nullptr) throw std::runtime_error(place);
  folder_ = place;
}

MadeSuite::~MadeSuite() {
  std::error_code error;
  fs::remove_all(folder_, error);
}

void MadeSuite::write(const std::string& name, const std::string& text, bool is_program) const {
  std::ofstream(folder_ / name) << text;
  if (is_program) fs::permissions(folder_ / name, fs::perms::owner_all);
}

Result<suite::Expectations> MadeSuite::read() const {
  write("case.c", source);
  return suite::read_expectations(folder_ / "case.c", variant);
}

suite::CaseResult MadeSuite::judge() {
  const auto expected = read();
  if (!expected) throw std::runtime_error(expected.error());
  write("observed.json", observed.dump());
  write("cured.json", cured.dump());
  write("why.json", why.dump());
  write("core.json", core.dump());
  write("case", "#!/usr/bin/env bash\n" + program + "\n", true);
  write("forksight", "#!/usr/bin/env bash\nset -eu\n" + stand_in + kStandIn, true);
  case_.name = "case";
  case_.folder = "made";
  case_.variant = variant;
  case_.program = folder_ / "case";
  case_.environment = environment;
  suite::RunnerOptions options;
  options.judge.forksight = folder_ / "forksight";
  options.judge.bare_limit = std::chrono::seconds(60);  // a busy machine may need much of this time
  options.judge.run_limit = limit;
  options.judge.parts = parts;
  options.case_limit = case_limit;
  auto run = suite::run_cases({{&case_, expected.value()}}, options, {});
  if (!run) throw std::runtime_error(run.error());
  return std::move(run->results.front());
}

std::string all_lines(const suite::CaseResult& result) {
  std::string text;
  for (const std::string& line : suite::explain(result)) text += line + "\n";
  return text;
}

}  // namespace forksight::test
