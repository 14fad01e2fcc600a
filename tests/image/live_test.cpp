#include "image/live.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "blocked_process.hpp"
#include "hang_process.hpp"
#include "image/stacks.hpp"

namespace forksight::image {
namespace {

using test::BlockedProcess;

std::string error_of(std::int32_t pid) {
  const auto image = open_live(pid);
  return image ? "" : image.error();
}

TEST(Live, DescribesAProcess) {
  BlockedProcess process([] { return static_cast<long>(pause()); });
  process.wait_blocked();
  const auto image = open_live(process.pid());
  ASSERT_TRUE(image) << image.error();
  EXPECT_EQ(image->pid, process.pid());
  EXPECT_EQ(image->ppid, getpid());
  EXPECT_TRUE(image->exe.ends_with("image_tests")) << image->exe;
  ASSERT_FALSE(image->cmdline.empty());
  EXPECT_FALSE(image->is_core);
  ASSERT_EQ(image->threads.size(), 1U);
  EXPECT_EQ(image->threads.front().name, "image_tests");
  EXPECT_EQ(image->threads.front().state, 'S');
  ASSERT_TRUE(image->threads.front().call);

  static const std::uint64_t kWord = 0x1122334455667788;
  EXPECT_EQ(image->memory->value<std::uint64_t>(reinterpret_cast<std::uint64_t>(&kWord)), kWord);
  EXPECT_FALSE(image->memory->value<std::uint64_t>(8));
  ASSERT_NE(image->mapping_of(reinterpret_cast<std::uint64_t>(&kWord)), nullptr);
  EXPECT_EQ(image->mapping_of(8), nullptr);

  const auto has = [&](const std::string& name) {
    return std::any_of(image->modules.begin(), image->modules.end(),
                       [&](const symbols::Module& module) { return module.path.ends_with(name); });
  };
  EXPECT_TRUE(has("image_tests"));
  EXPECT_TRUE(has("libc.so.6"));
  EXPECT_TRUE(has("[vdso]"));
}

TEST(Live, ReadsUpToTheEndOfAMapping) {
  BlockedProcess process([] { return static_cast<long>(pause()); });
  process.wait_blocked();
  const auto image = open_live(process.pid(), {false, nullptr});
  ASSERT_TRUE(image);
  const auto stack = std::find_if(image->mappings.begin(), image->mappings.end(),
                                  [](const proc::Mapping& mapping) { return mapping.path == "[stack]"; });
  ASSERT_NE(stack, image->mappings.end());
  EXPECT_EQ(image->memory->bytes(stack->end - 100, 4096).size(), 100U);
  EXPECT_TRUE(image->memory->bytes(~std::uint64_t{0} - 4, 100).empty());
}

TEST(Live, SaysWhyAProcessCannotBeExamined) {
  EXPECT_NE(error_of(getpid()).find("forksight itself"), std::string::npos);
  EXPECT_NE(error_of(0x7fffffff).find("there is no such process"), std::string::npos);
  EXPECT_NE(error_of(-1).find("there is no such process"), std::string::npos);

  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const std::string zombie = error_of(child);
  EXPECT_NE(zombie.find("zombie"), std::string::npos) << zombie;
  EXPECT_NE(zombie.find(std::to_string(getpid()) + " (image_tests)"), std::string::npos) << zombie;
  waitpid(child, nullptr, 0);
}

TEST(Live, ExaminesATracedProcessWithoutAStop) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto image = open_live(child);
  EXPECT_TRUE(image) << image.error();
  if (image) {
    EXPECT_EQ(image->threads.front().state, 't');
    EXPECT_EQ(image->limits.size(), 1U);
    const std::string tracer = "is traced by " + std::to_string(getpid()) + " (image_tests)";
    EXPECT_NE(image->limits.front().find(tracer), std::string::npos) << image->limits.front();
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

TEST(Live, NeedsTheRightsOfItsUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  BlockedProcess process([] { return static_cast<long>(pause()); });
  process.wait_blocked();
  const pid_t other = fork();
  if (other == 0) {
    const bool is_nobody = setgroups(0, nullptr) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
    const std::string error = error_of(process.pid());
    _exit(is_nobody && error.find("belongs to another user (uid 0)") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

TEST(Live, FindsAProgramWhoseFileWasReplaced) {
  const std::string program = testing::TempDir() + "forksight_gone_" + std::to_string(getpid());
  std::filesystem::copy_file(std::string(IMAGE_FIXTURES) + "/image_hang_O0", program);
  const test::HangProcess process(program);
  std::filesystem::remove(program);
  std::filesystem::copy_file(std::string(IMAGE_FIXTURES) + "/image_hang_O2", program);  // as a package update does
  const auto image = open_live(process.pid());
  std::filesystem::remove(program);
  ASSERT_TRUE(image) << image.error();
  EXPECT_EQ(image->exe, program);
  EXPECT_EQ(image->modules.front().path, program);
  EXPECT_TRUE(image->modules.front().file.ends_with("/exe")) << image->modules.front().file;
  Stacks stacks(image.value());
  const std::string names = test::names_of(stacks.of(image->threads.front()));
  EXPECT_NE(names.find("wait_for main"), std::string::npos) << names;
}

TEST(Live, LeavesAStoppedProcessStopped) {
  BlockedProcess process([] { return static_cast<long>(pause()); });
  process.wait_blocked();
  kill(process.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(process.pid(), &status, WUNTRACED), process.pid());
  const auto image = open_live(process.pid());
  ASSERT_TRUE(image) << image.error();
  EXPECT_EQ(image->threads.front().state, 'T');
  ASSERT_FALSE(image->limits.empty());
  EXPECT_NE(image->limits.front().find("stopped by a signal"), std::string::npos);
  const auto again = open_live(process.pid());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->threads.front().state, 'T');
}

}  // namespace
}  // namespace forksight::image
