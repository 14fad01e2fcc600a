#include "collect/load.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "collect/run_log.hpp"
#include "files/visit_files.hpp"
#include "support/reader.hpp"
#include "support/scenes.hpp"

namespace forksight::collect {
namespace {

namespace fs = std::filesystem;

class LoadRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("forksight_load_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  Result<model::Model> load(const std::vector<fs::path>& paths) {
    return load_run(files::reader_of_test(), paths, {.symbolize = false, .progress = {}});
  }
  // Writes a run.json whose command is "app".
  static void write_run_log(const fs::path& folder) {
    RunLog log;
    log.command = {"app"};
    std::ofstream(folder / "run.json") << to_json(log);
  }

  fs::path folder_;
};

TEST_F(LoadRun, ReadsFoldersOfFolders) {
  fs::create_directories(folder_ / "run-1" / "deep");
  fs::create_directories(folder_ / "run-2");
  test::LockTrace one({});
  one.touch(trace::TouchKind::kLock);
  one.trace.write(folder_ / "run-1" / "deep" / "a.fstrace");
  test::LockTrace two({}, 2500);
  two.trace.host("node2");
  two.touch(trace::TouchKind::kLock);
  two.trace.write(folder_ / "run-2" / "b.fstrace");
  const auto model = load({folder_});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->processes.size(), 4U);
  EXPECT_EQ(model->touches.size(), 2U);
  // load_run() shifts the indices that come from the second trace. So these indices refer to the processes and forks of
  // the second trace.
  EXPECT_EQ(model->processes[model->touches[1].process].pid, 2500);
  EXPECT_EQ(model->forks[model->touches[1].fork].process, 2U);
}

TEST_F(LoadRun, ReadsAFileOnceIfItIsNamedTwice) {
  test::LockTrace scene({});
  scene.trace.write(folder_ / "a.fstrace");
  const auto model = load({folder_, folder_ / "a.fstrace", folder_});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->forks.size(), 1U);
}

TEST_F(LoadRun, ReadsAFileOnceIfItIsNamedByDifferentPaths) {
  fs::create_directories(folder_ / "run");
  test::LockTrace scene({});
  scene.trace.write(folder_ / "run" / "a.fstrace");
  write_run_log(folder_ / "run");
  fs::create_directory_symlink(folder_ / "run", folder_ / "link");
  const auto once = load({folder_ / "run"});
  ASSERT_TRUE(once.ok());
  for (const fs::path& again : {folder_ / "run" / "", folder_ / "." / "run", folder_ / "run" / ".." / "run",
                                folder_ / "link", folder_ / "link" / "a.fstrace"}) {
    const auto model = load({folder_ / "run", again});
    ASSERT_TRUE(model.ok()) << again;
    EXPECT_EQ(model->forks.size(), 1U) << again;
    EXPECT_EQ(model->processes.size(), once->processes.size()) << again;
    EXPECT_EQ(model->limits, once->limits) << again;
  }
}

// Makes `folder`, and below it a chain of 40 folders, each in the one before it. forksight searches 32 of them.
void make_deep(fs::path folder) {
  for (int i = 0; i < 40; ++i) folder /= "d";
  fs::create_directories(folder);
}

TEST_F(LoadRun, AFolderThatIsNotSearchedToItsEndDoesNotHideTheOthers) {
  make_deep(folder_ / "deep");
  for (const char* const name : {"a", "z"}) {
    fs::create_directories(folder_ / name);
    test::LockTrace scene({});
    scene.trace.write(folder_ / name / "a.fstrace");
  }
  const auto model = load({folder_});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->forks.size(), 2U);
  ASSERT_EQ(model->limits.size(), 1U);
  EXPECT_NE(model->limits[0].find("its subfolders are not searched"), std::string::npos) << model->limits[0];
}

TEST_F(LoadRun, AFolderWithoutEvidenceThatIsNotSearchedToItsEndIsAnError) {
  make_deep(folder_ / "deep");
  fs::create_directories(folder_ / "empty");
  const auto deep = load({folder_ / "deep"});
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().find("its subfolders are not searched"), std::string::npos) << deep.error();
  const auto both = load({folder_ / "deep", folder_ / "empty"});
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.error().find("empty: no *.fstrace and no run.json in it"), std::string::npos) << both.error();
}

TEST_F(LoadRun, ASearchEndsAfterSomeEntriesAndVisitsNearFoldersFirst) {
  // The search meets the folders of one level in any order.
  for (const char* const name : {"a", "b", "c"}) {
    fs::create_directories(folder_ / name / "deep");
    for (int i = 0; i < 10; ++i) std::ofstream(folder_ / name / "deep" / std::to_string(i));
    std::ofstream(folder_ / name / "near");
  }
  std::size_t near = 0;
  std::size_t all = 0;
  const auto count = [&](const fs::path& path) {
    ++all;
    if (path.filename() == "near") ++near;
  };
  const auto limits = files::visit_files(folder_, count, 10);
  EXPECT_EQ(near, 3U);
  EXPECT_EQ(all, 10U);
  EXPECT_EQ(limits, (std::vector<std::string>{folder_.string() +
                                              ": not searched to its end: it has more than 10 files and folders"}));
  all = 0;
  EXPECT_TRUE(files::visit_files(folder_, count, 39).empty());
  EXPECT_EQ(all, 39U);
}

TEST_F(LoadRun, UnreadableTracesDoNotHideARunLog) {
  std::ofstream(folder_ / "bad.fstrace") << "something else";
  write_run_log(folder_);
  const auto model = load({folder_});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->command, (std::vector<std::string>{"app"}));
  ASSERT_EQ(model->limits.size(), 1U);
  EXPECT_NE(model->limits[0].find("bad.fstrace: not a forksight trace"), std::string::npos) << model->limits[0];
}

TEST_F(LoadRun, AFolderWithoutEvidenceIsAnError) {
  const auto model = load({folder_});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error(),
            folder_.string() + ": no *.fstrace and no run.json in it; name the folder that `forksight run` wrote");
}

TEST_F(LoadRun, AMissingFolderIsAnError) {
  const auto model = load({folder_ / "none"});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error(), (folder_ / "none").string() +
                               ": no such file or folder; `forksight run` leaves no folder if it recorded nothing");
}

TEST_F(LoadRun, OneUnreadableTraceOfTwoIsALimit) {
  test::LockTrace scene({});
  scene.trace.write(folder_ / "good.fstrace");
  std::ofstream(folder_ / "bad.fstrace") << "something else";
  const auto model = load({folder_});
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->limits.size(), 1U);
  EXPECT_NE(model->limits[0].find("bad.fstrace: not a forksight trace"), std::string::npos);
  EXPECT_EQ(model->forks.size(), 1U);
}

TEST_F(LoadRun, OnlyUnreadableTracesAreAnError) {
  std::ofstream(folder_ / "bad.fstrace") << "something else";
  EXPECT_FALSE(load({folder_}).ok());
}

TEST_F(LoadRun, ARunLogAloneIsEvidence) {
  write_run_log(folder_);
  const auto model = load({folder_});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->command, (std::vector<std::string>{"app"}));
}

TEST_F(LoadRun, OnlyARunLogThatCannotBeReadIsAnError) {
  std::ofstream(folder_ / "run.json") << "{}";
  const auto model = load({folder_});
  ASSERT_FALSE(model.ok());
  EXPECT_TRUE(model.error().ends_with("run.json: schema \"\", this build reads \"forksight-run/1\"")) << model.error();
}

TEST_F(LoadRun, ReportsItsProgress) {
  test::LockTrace({}).trace.write(folder_ / "a.fstrace");
  test::LockTrace({}).trace.write(folder_ / "b.fstrace");
  std::vector<std::pair<std::size_t, std::size_t>> seen;
  const auto model = load_run(
      files::reader_of_test(), {folder_},
      {.symbolize = false, .progress = [&](std::size_t done, std::size_t total) { seen.emplace_back(done, total); }});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 2}, {1, 2}, {2, 2}}));
}

}  // namespace
}  // namespace forksight::collect
