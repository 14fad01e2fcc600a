// Tests the shim's tables for --lock-order and --predict. The trace must have the right measurements. If a table is
// full, the report must say what did not fit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "../support/reader.hpp"
#include "collect/load.hpp"

namespace {

namespace fs = std::filesystem;
using forksight::model::Model;

constexpr std::size_t kPlaces = 4096;

class Foresight : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "forksight-foresight-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Model run(std::string scene, std::string option) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string library = "LD_PRELOAD=" FORKSIGHT_SHIM;
    std::string out = "FORKSIGHT_OUT=" + folder_.string();
    char* environment[] = {library.data(), out.data(), option.data(), nullptr};
    std::string program = FORKSIGHT_PROGRAM;
    char* arguments[] = {program.data(), scene.data(), nullptr};
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char text[64] = {};
    EXPECT_GE(read(ends[0], text, sizeof text - 1), 0);
    printed_ = text;
    close(ends[0]);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    auto loaded = forksight::collect::load_run(forksight::files::reader_of_test(), {folder_});
    EXPECT_TRUE(loaded.ok());
    return loaded.ok() ? std::move(loaded).value() : Model();
  }

  static bool says(const Model& model, const char* what) {
    return std::ranges::any_of(model.limits,
                               [&](const std::string& limit) { return limit.find(what) != std::string::npos; });
  }

  fs::path folder_;
  std::string printed_;
};

TEST_F(Foresight, MeasuresTheShareOfTime) {
  const Model model = run("share", "FORKSIGHT_PREDICT=1");
  ASSERT_EQ(model.racy_touches.size(), 1U);
  const auto& touch = model.racy_touches[0];
  const double share = std::stod(printed_) / 1000;
  EXPECT_GT(share, 0.2);
  // The program and the shim each measure the share. A preemption between the two measurements makes the results
  // differ.
  EXPECT_NEAR(touch.share, share, 0.1);
  EXPECT_EQ(touch.times, 3U);
  EXPECT_EQ(touch.threads, 1U);
  EXPECT_GE(touch.window_ns, 60'000'000U);
  // The worker held the lock in the first half of the measured time.
  ASSERT_GE(touch.slices.size(), 8U);
  double held = 0;
  double held_early = 0;
  double time = 0;
  for (const auto& slice : touch.slices) {
    EXPECT_LE(slice.held, slice.time * 1.001);
    held += slice.held;
    if (time < 0.5) held_early += slice.held;
    time += slice.time;
  }
  EXPECT_NEAR(held, touch.share, 0.001);
  EXPECT_NEAR(time, 1, 0.001);
  // On a busy machine the worker may begin late. So the test requires only that the worker held the lock longer in the
  // first half of the measured time than in the second half.
  EXPECT_GT(held_early, held / 2);
  EXPECT_EQ(touch.slices.back().held, 0);
}

// If the forking thread has joined a thread, the joined thread cannot hold a lock at a later fork. So the hold times of
// the joined thread do not count. If another thread has done the join, the hold times of the joined thread count. The
// reason is that the joining thread may have started a similar thread, which exists at the fork.
TEST_F(Foresight, LeavesOutThreadsThatTheForkingThreadJoined) {
  const Model joined = run("joined", "FORKSIGHT_PREDICT=1");
  ASSERT_EQ(joined.racy_touches.size(), 1U);
  EXPECT_LT(joined.racy_touches[0].share, 0.1);
  EXPECT_EQ(joined.racy_touches[0].times, 1U);
  fs::remove_all(folder_);
  fs::create_directory(folder_);
  const Model by_another = run("joined_by_another", "FORKSIGHT_PREDICT=1");
  ASSERT_EQ(by_another.racy_touches.size(), 1U);
  EXPECT_GT(by_another.racy_touches[0].share, 0.3);
  EXPECT_EQ(by_another.racy_touches[0].times, 2U);
  EXPECT_EQ(by_another.racy_touches[0].threads, 1U);
}

TEST_F(Foresight, RecordsNothingWithoutTheOption) {
  const Model model = run("share", "FORKSIGHT_PREDICT=0");
  EXPECT_TRUE(model.racy_touches.empty());
  EXPECT_EQ(model.forks.size(), 1U);
  EXPECT_TRUE(run("orders", "UNASKED=1").lock_orders.empty());
}

TEST_F(Foresight, SaysHowManyOrdersDidNotFit) {
  const Model model = run("orders", "FORKSIGHT_LOCK_ORDER=1");
  EXPECT_GT(model.lock_orders.size(), kPlaces / 2);
  EXPECT_LE(model.lock_orders.size(), kPlaces);
  EXPECT_TRUE(says(model, std::to_string(6000 - model.lock_orders.size()).c_str()));
  EXPECT_TRUE(says(model, "--lock-order: "));
}

TEST_F(Foresight, SaysHowManyTimesDidNotFit) {
  const Model model = run("holds", "FORKSIGHT_PREDICT=1");
  EXPECT_TRUE(says(model, "--predict: "));
  EXPECT_TRUE(model.racy_touches.empty()) << "the worker had been joined";
}

// When a child begins, its copy of the table is full of entries of its parent. The child must have room for its own.
TEST_F(Foresight, EachGenerationHasRoom) {
  const Model model = run("generations", "FORKSIGHT_LOCK_ORDER=1");
  std::map<forksight::model::ProcessId, std::size_t> orders;
  for (const auto& order : model.lock_orders) ++orders[model.lives[order.life].process];
  EXPECT_EQ(orders.size(), 4U);
  for (const auto& [process, count] : orders) {
    EXPECT_GT(count, kPlaces / 2) << process;
    EXPECT_LE(count, kPlaces) << process;
  }
}

}  // namespace
