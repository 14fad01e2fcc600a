// Tests which cases a filter selects, and which manifests are refused.
#include "suite/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "suite/views.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using suite::Filter;
using testing::ElementsAre;
using testing::HasSubstr;

class SuiteSelect : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("forksight_select_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "src");
    add("lock_a", "locks", "", "// EXPECT-BARE: hang\n// EXPECT: orphaned-mutex proven hang\n");
    add("lock_b", "locks", "",
        "// EXPECT-BARE: spin\n// EXPECT: orphaned-spinlock proven hang\n// EXPECT-UNKNOWN: x\n");
    add("lock_b.repaired", "locks", "", "// EXPECT-BARE: ok\n// EXPECT-NONE\n");
    add("omp", "openmp", "",
        "// EXPECT-BARE: hang\n// EXPECT: lost-openmp-pool proven hang\n"
        "// EXPECT-WHY: orphaned-mutex likely hang\n// EXPECT-CURED: --omp=rebuild stdout=x\n");
    add("slow", "locks", "\"stress\"", "// EXPECT-BARE: ok\n// EXPECT-NONE\n");
    write(cases_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void add(const std::string& name, const std::string& kind, const std::string& label, const std::string& source) {
    std::ofstream(folder_ / "src" / (name + ".c")) << source;
    cases_ += std::string(cases_.empty() ? "" : ",") + R"({"name": ")" + name + R"(", "folder": ")" + kind +
              R"(", "variant": "", "source": "src/)" + name + R"(.c", "program": "bin/)" + name +
              R"(", "interpreter": "", "loads": [], "modules": [], "environment": {"A": "b"}, "labels": [)" + label +
              "]}";
  }
  void write(const std::string& cases) {
    std::ofstream(folder_ / "cases.json") << R"({"schema": "forksight-suite-cases/1", "cases": [)" << cases << "]}";
  }

  std::vector<std::string> names(const Filter& filter, bool all = false) {
    const auto suite = suite::read_suite(folder_);
    if (!suite) return {suite.error()};
    const suite::Selected selected = suite::select(suite.value(), filter, all);
    if (!selected.error.message.empty())
      return {(selected.error.is_usage ? "usage: " : "bad: ") + selected.error.message};
    std::vector<std::string> chosen;
    for (const suite::Entry& entry : selected.entries) chosen.push_back(entry.which->name);
    return chosen;
  }

  fs::path folder_;
  std::string cases_;
};

TEST_F(SuiteSelect, LeavesOutLabelledCasesUnlessRequested) {
  EXPECT_THAT(names({}), ElementsAre("lock_a", "lock_b", "lock_b.repaired", "omp"));
  EXPECT_THAT(names({}, true), ElementsAre("lock_a", "lock_b", "lock_b.repaired", "omp", "slow"));
  EXPECT_THAT(names({.names = {"slow"}}), ElementsAre("slow"));
  EXPECT_THAT(names({.labels = {"stress"}}), ElementsAre("slow"));
  EXPECT_THAT(names({.names = {"s*"}}), ElementsAre(HasSubstr("usage: ")));
}

TEST_F(SuiteSelect, CombinesAllFilters) {
  EXPECT_THAT(names({.names = {"lock_*"}}), ElementsAre("lock_a", "lock_b", "lock_b.repaired"));
  EXPECT_THAT(names({.slugs = {"orphaned-mutex"}}), ElementsAre("lock_a", "omp"));
  EXPECT_THAT(names({.slugs = {"orphaned-mutex"}, .folders = {"locks"}}), ElementsAre("lock_a"));
  EXPECT_THAT(names({.outcomes = {"spin", "ok"}}), ElementsAre("lock_b", "lock_b.repaired"));
}

TEST_F(SuiteSelect, NamesTheFilterThatMatchesNothing) {
  EXPECT_THAT(names({.names = {"lock_a", "lock_z"}}), ElementsAre(HasSubstr("usage: lock_z: no such case")));
  EXPECT_THAT(names({.labels = {"gpu"}}), ElementsAre(HasSubstr("usage: gpu: no case has that label")));
  EXPECT_THAT(names({.folders = {"mpi"}}), ElementsAre(HasSubstr("usage: mpi: ")));
  EXPECT_THAT(names({.slugs = {"victim"}}), ElementsAre(HasSubstr("usage: no case matches all of")));
}

TEST_F(SuiteSelect, NamesTheInvalidSource) {
  std::ofstream(folder_ / "src" / "omp.c") << "// EXPECT-BARE: perhaps\n";
  EXPECT_THAT(names({}), ElementsAre(HasSubstr("bad: omp: ")));
  EXPECT_THAT(names({.names = {"lock_a"}}), ElementsAre("lock_a"));
}

TEST_F(SuiteSelect, RefusesInvalidManifests) {
  for (const char* cases : {"{", "{}", "[]", "1", R"({"name": 1})"}) {
    write(cases);
    EXPECT_THAT(names({}), ElementsAre(HasSubstr("cases.json: "))) << cases;
  }
  write(cases_ + "," + cases_);
  EXPECT_THAT(names({}), ElementsAre(HasSubstr("lock_a is there twice")));
  std::ofstream(folder_ / "cases.json") << R"({"schema": "forksight-suite-cases/2", "cases": []})";
  EXPECT_THAT(names({}), ElementsAre(HasSubstr("its schema is")));
  fs::remove(folder_ / "cases.json");
  EXPECT_THAT(names({}), ElementsAre(HasSubstr("--cases names the folder")));
}

TEST_F(SuiteSelect, ListsCasesWithTheirExpectations) {
  const auto suite = suite::read_suite(folder_);
  ASSERT_TRUE(suite) << suite.error();
  const auto entries = suite::select(suite.value(), {}, true).entries;
  const std::string table = suite::list_as_table(entries, std::nullopt);
  EXPECT_THAT(table, HasSubstr("CASE             HAZARD             CERTAINTY  BARE  LIBRARY         CURES\n"));
  EXPECT_THAT(table, HasSubstr("omp              lost-openmp-pool   proven     hang  openmp          --omp=rebuild\n"));
  EXPECT_THAT(table, HasSubstr("slow             (none)                        ok    locks (stress)\n"));
  EXPECT_THAT(table, testing::EndsWith("\n5 cases, 2 of them silent controls\n"));
  EXPECT_EQ(suite::list_as_table(entries, 100), table);
  const std::string narrow = suite::list_as_table(entries, 60);
  EXPECT_THAT(narrow, HasSubstr("omp\n    hazard: lost-openmp-pool; certainty: proven; bare: hang;\n"
                                "      library: openmp; cures: --omp=rebuild\n"));
  EXPECT_THAT(narrow, HasSubstr("slow\n    hazard: (none); bare: ok; library: locks (stress)\n"));
  EXPECT_THAT(narrow, testing::EndsWith("\n5 cases, 2 of them silent controls\n"));
  const std::string markdown = suite::list_as_markdown(entries);
  EXPECT_THAT(markdown,
              HasSubstr("| [lost-openmp-pool](hazards/lost-openmp-pool.md) | `omp` | hang | proven hang | likely "
                        "`orphaned-mutex` | | `--omp=rebuild` |\n"));
  EXPECT_THAT(markdown, HasSubstr("| `lock_b` | spin | proven hang | nothing | | |\n"));
  EXPECT_THAT(markdown, HasSubstr("| locks | `lock_b.repaired`, `slow` |\n"));
}

}  // namespace
}  // namespace forksight
