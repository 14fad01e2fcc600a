#include "suite/made_suite.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

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

// Writes the report for the options that it is called with, and is the program, whose status it passes on.
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
  const Json frames = Json::array({
      {{"function", "std::mutex::lock()"}, {"file", "/usr/include/mutex"}, {"line", 9}},
      {{"function", "inner(int)"}, {"file", "/src/case.c"}, {"line", 5}},
      {{"function", "outer.isra.0"}, {"file", "/src/case.c"}, {"line", 6}},
      {{"function", "main"}, {"file", "/src/case.c"}, {"line", 7}},
  });
  return {{"rule", "orphaned-mutex"},
          {"hang", "proven"}, {"cause", "proven"},
          {"outcome", "hang"},
          {"summary", "child 7 hangs"},
          {"count", 1},
          {"culprit",
           {{"kind", "lock"},
            {"name", "m (mutex)"},
            {"library", "/x/case"},
            {"stack", frames},
            {"holder", {{"name", "worker"}, {"start_routine", "worker_main(void*)"}}}}},
          {"victims", {{{"pid", 1}, {"via", "wait4"}}}},
          {"stack", Json::array()},
          {"fork", {{"stack", Json::array()}}}};
}

Json changed(Json finding, const char* path, Json value) {
  finding[Json::json_pointer(path)] = std::move(value);
  return finding;
}

Json report_of(std::vector<Json> findings) { return {{"findings", std::move(findings)}}; }

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
  options.judge.bare_limit = std::max<std::chrono::milliseconds>(limit, std::chrono::seconds(10));
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
