// The shim marks a thread while it is inside certain libc functions. Tests that the mark is gone after each way to
// leave such a function.
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../support/reader.hpp"
#include "collect/load.hpp"

namespace {

namespace fs = std::filesystem;

class Marks : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "forksight-marks-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  forksight::model::Model run() {
    std::string library = "LD_PRELOAD=" FORKSIGHT_SHIM;
    std::string out = "FORKSIGHT_OUT=" + folder_.string();
    char* environment[] = {library.data(), out.data(), nullptr};
    std::string program = FORKSIGHT_MARKS;
    char* arguments[] = {program.data(), nullptr};
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment), 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    auto loaded = forksight::collect::load_run(forksight::files::reader_of_test(), {folder_});
    EXPECT_TRUE(loaded.ok());
    return loaded.ok() ? std::move(loaded).value() : forksight::model::Model();
  }

  fs::path folder_;
};

std::vector<std::string> functions_at(const forksight::model::Fork& fork) {
  std::vector<std::string> names;
  for (const auto& in_flight : fork.calls) names.push_back(in_flight.call.function);
  return names;
}

TEST_F(Marks, AreRemovedHoweverTheCallEnds) {
  using Names = std::vector<std::string>;
  const forksight::model::Model model = run();
  ASSERT_EQ(model.forks.size(), 5U);
  EXPECT_EQ(functions_at(model.forks[0]), Names{"dl_iterate_phdr"}) << "inside";
  EXPECT_EQ(functions_at(model.forks[1]), Names{}) << "left by an exception";
  EXPECT_EQ(functions_at(model.forks[2]), Names{}) << "left by cancellation";
  EXPECT_EQ(functions_at(model.forks[3]), Names{"dl_iterate_phdr"}) << "main itself is inside";
  EXPECT_EQ(functions_at(model.forks[4]), Names{}) << "left by longjmp";
  EXPECT_FALSE(model.forks[0].calls.at(0).by_forking_thread);
  EXPECT_TRUE(model.forks[3].calls.at(0).by_forking_thread);
}

}  // namespace
