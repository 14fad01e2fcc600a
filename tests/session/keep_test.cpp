// Tests which folders of old runs are removed. Nothing else may ever be removed.
#include "session/keep.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collect/run_log.hpp"
#include "forksight/trace/header.hpp"
#include "render/json.hpp"
#include "session/job_report.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

std::string own_host() {
  utsname names{};
  ::uname(&names);
  return names.nodename;
}

class Keep : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-keep-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    root_ = folder_ / "forksight-out";
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void write_trace(const fs::path& file, std::size_t bytes = 4096, int rank = -1,
                          const std::string& host = own_host()) {
    std::string text(bytes, 'x');
    trace::TraceHeader header{};
    header.magic = trace::kMagic;
    header.rank = rank;
    std::strncpy(header.host, host.c_str(), sizeof header.host - 1);
    std::memcpy(text.data(), static_cast<const void*>(&header), sizeof header);
    std::ofstream(file, std::ios::binary) << text;
  }

  // Makes the folder of a run that ended `hours_ago`, with a run.json and a trace. Returns its name.
  std::string make_run(int hours_ago, std::size_t bytes = 4096, int rank = -1) {
    const std::string name = "20260102-030405-" + std::to_string(1000 + hours_ago);
    fs::create_directory(root_ / name);
    collect::RunLog log;
    log.host = own_host();
    EXPECT_TRUE(collect::write_run_log(root_ / name, log));
    write_trace(root_ / name / "1-1.fstrace", bytes, rank);
    set_age(name, hours_ago);
    return name;
  }
  void set_age(const std::string& name, int hours_ago) const {
    fs::last_write_time(root_ / name, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  std::vector<std::string> remove(const KeepBounds& bounds, const std::string& current = "none",
                                  bool keeps_ranks = false) const {
    return remove_old_runs(root_, root_ / current, {bounds, keeps_ranks});
  }
  bool is_there(const std::string& name) const { return fs::is_directory(root_ / name) && !fs::is_empty(root_ / name); }

  fs::path folder_;
  fs::path root_;
};

constexpr KeepBounds kOne{.runs = 1, .bytes = {}};
constexpr KeepBounds kTwo{.runs = 2, .bytes = {}};

TEST(KeepBounds, AreRead) {
  EXPECT_EQ(read_keep_bounds("all").value(), KeepBounds());
  EXPECT_EQ(read_keep_bounds("7").value(), (KeepBounds{7, {}}));
  EXPECT_EQ(read_keep_bounds("3K").value(), (KeepBounds{{}, 3072}));
  EXPECT_EQ(read_keep_bounds("2G,5").value(), (KeepBounds{5, std::uint64_t{2} << 30U}));
  EXPECT_EQ(read_keep_bounds(kDefaultKeep).value(), (KeepBounds{20, 200U << 20U}));
  for (const char* bad :
       {"", "0", "-1", "1,2", "1M,2M", "7,", ",7", "M", "7X", "1.5G", "all,7", "99999999999999999999"}) {
    const auto refused = read_keep_bounds(bad);
    EXPECT_FALSE(refused) << bad;
  }
}

TEST_F(Keep, TheOldestRunsAreRemoved) {
  const std::string oldest = make_run(30);
  const std::string newest = make_run(1);
  const std::string older = make_run(20);
  const std::string newer = make_run(2);
  EXPECT_EQ(remove({}), std::vector<std::string>());
  EXPECT_TRUE(is_there(oldest)) << "without a bound no run is removed";
  EXPECT_EQ(remove(kTwo), (std::vector<std::string>{older, oldest}));
  EXPECT_TRUE(is_there(newest) && is_there(newer));
  EXPECT_FALSE(fs::exists(root_ / older) || fs::exists(root_ / oldest));
}

TEST_F(Keep, TheCurrentRunStaysEvenIfOldAndLarge) {
  const std::string current = make_run(9, 100'000);
  const std::string other = make_run(1);
  EXPECT_EQ(remove({1, 1024}, current), std::vector<std::string>{other});
  EXPECT_TRUE(is_there(current));
}

TEST_F(Keep, TheDiskIsBounded) {
  const std::string oldest = make_run(3, 300'000);
  const std::string older = make_run(2, 300'000);
  const std::string newest = make_run(1, 300'000);
  EXPECT_EQ(remove({{}, 1U << 20U}), std::vector<std::string>());
  EXPECT_EQ(remove({{}, 700'000}, newest), std::vector<std::string>{oldest});
  EXPECT_EQ(remove({{}, 1024}, newest), std::vector<std::string>{older});
}

TEST_F(Keep, AFolderWithAForeignFileStays) {
  const std::string with_file = make_run(5);
  std::ofstream(root_ / with_file / "notes.txt") << "mine\n";
  const std::string with_folder = make_run(6);
  fs::create_directory(root_ / with_folder / "1.fstrace");
  const std::string with_other_trace = make_run(7);
  std::ofstream(root_ / with_other_trace / "2.fstrace") << std::string(5000, 'x');
  const std::string with_other_log = make_run(8);
  std::ofstream(root_ / with_other_log / collect::kRunLogFile) << "{}\n";
  for (const std::string& name : {with_file, with_folder, with_other_trace, with_other_log}) set_age(name, 10);
  const std::string newest = make_run(1);
  EXPECT_EQ(remove(kOne), std::vector<std::string>());
  for (const std::string& name : {with_file, with_folder, with_other_trace, with_other_log}) {
    EXPECT_TRUE(fs::exists(root_ / name / "1-1.fstrace")) << name;
    EXPECT_TRUE(fs::exists(root_ / name / collect::kRunLogFile)) << name;
  }
  EXPECT_TRUE(is_there(newest));
}

TEST_F(Keep, TheReportOfAJobIsRemovedWithItsRun) {
  make_run(1);
  const std::string job = make_run(5);
  std::ofstream(root_ / job / kJobReportFile) << render::render_json({}, {});
  set_age(job, 5);
  const std::string foreign = make_run(6);
  std::ofstream(root_ / foreign / kJobReportFile) << R"({"schema": "forksight-outside/2"})";
  set_age(foreign, 6);
  EXPECT_EQ(remove(kOne), std::vector<std::string>{job});
  EXPECT_TRUE(is_there(foreign)) << "a file that has the name of a report, but is no report, may belong to the user";
}

TEST_F(Keep, FoldersWithOtherNamesAndEmptyFoldersStay) {
  make_run(1);
  fs::rename(root_ / make_run(5), root_ / "my-results");
  fs::rename(root_ / make_run(6), root_ / "20260102-030405");
  fs::rename(root_ / make_run(7), root_ / "20260102-030405-7x");
  const std::string empty = "20260102-030405-9";
  fs::create_directory(root_ / empty);
  set_age(empty, 9);
  EXPECT_EQ(remove(kOne), std::vector<std::string>());
  EXPECT_TRUE(is_there("my-results") && is_there("20260102-030405") && is_there("20260102-030405-7x"));
  EXPECT_TRUE(fs::is_directory(root_ / empty));
}

TEST_F(Keep, LinksAreNotFollowed) {
  make_run(1);
  const std::string moved = make_run(5);
  fs::rename(root_ / moved, folder_ / moved);
  fs::create_directory_symlink(folder_ / moved, root_ / moved);
  const std::string with_link = make_run(6);
  fs::rename(root_ / with_link / "1-1.fstrace", folder_ / "precious.fstrace");
  fs::create_symlink(folder_ / "precious.fstrace", root_ / with_link / "1-1.fstrace");
  set_age(with_link, 6);
  EXPECT_EQ(remove(kOne), std::vector<std::string>());
  EXPECT_TRUE(fs::is_symlink(root_ / moved) && fs::exists(folder_ / moved / "1-1.fstrace"));
  EXPECT_TRUE(fs::is_symlink(root_ / with_link / "1-1.fstrace") && fs::exists(folder_ / "precious.fstrace"));
  // If the folder of all runs is itself a symbolic link, no run in it is removed.
  make_run(7);
  fs::create_directory_symlink(root_, folder_ / "link");
  EXPECT_EQ(remove_old_runs(folder_ / "link", folder_ / "link" / "none", {kOne, false}), std::vector<std::string>());
  EXPECT_EQ(remove(kOne).size(), 1U);
}

TEST_F(Keep, ARunThatGoesOnStays) {
  make_run(1);
  const std::string locked = make_run(5);
  const int fd = ::open((root_ / locked).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_SH), 0);
  // The forksight of another run has ended, but one process of that run still exists. The environment of this process
  // names the folder of the run by another path.
  const std::string named = make_run(6);
  fs::create_directory_symlink(root_, folder_ / "link");
  std::string variable = "FORKSIGHT_OUT=" + (folder_ / "link" / "." / named).string();
  char* const environment[] = {variable.data(), nullptr};
  char name[] = "sleep";
  char time[] = "1000";
  char* const words[] = {name, time, nullptr};
  pid_t child = -1;
  ASSERT_EQ(::posix_spawnp(&child, "sleep", nullptr, nullptr, words, environment), 0);
  // posix_spawn() returns before the kernel shows the new environment.
  const std::string shown = "/proc/" + std::to_string(child) + "/environ";
  while (std::ifstream(shown).get() == std::ifstream::traits_type::eof()) std::this_thread::yield();
  EXPECT_EQ(remove(kOne), std::vector<std::string>());
  EXPECT_TRUE(is_there(locked) && is_there(named));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(fd);
  EXPECT_EQ(remove(kOne), (std::vector<std::string>{locked, named}));
}

TEST_F(Keep, RunsOfOtherMachinesStayAndRunsOfRanksIfRequested) {
  make_run(1);
  const std::string elsewhere = make_run(5);
  write_trace(root_ / elsewhere / "2-2.fstrace", 4096, -1, "another-machine");
  set_age(elsewhere, 5);
  const std::string rank = make_run(6, 4096, 3);
  EXPECT_EQ(remove(kOne, "none", true), std::vector<std::string>());
  EXPECT_EQ(remove(kOne), std::vector<std::string>{rank});
  EXPECT_TRUE(is_there(elsewhere));
}

}  // namespace
}  // namespace forksight
