// Tests find_libc(), which finds out the libc of another process. A child process parses the file of this libc.
#include "guard/find_libc.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "guard/child.hpp"
#include "proc/mappings.hpp"

namespace forksight::guard {
namespace {

class Child {
 public:
  Child() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// The functions answer_*() replace the child process that parses the file of a libc. They count the questions.
int g_questions = 0;

abi::Libc answer_always(std::int32_t) {
  ++g_questions;
  return {{2, 99}, abi::ConditionKind::kWithReferences};
}

abi::Libc answer_never(std::int32_t) {
  ++g_questions;
  return {};
}

abi::Libc answer_the_second_time(std::int32_t tid) { return g_questions == 0 ? answer_never(tid) : answer_always(tid); }

TEST(FindLibc, AnswersWhatTheReaderFinds) {
  const Child child;
  ASSERT_GT(child.pid(), 0);
  proc::set_libc_parser({});
  const abi::Libc here = proc::libc_of(child.pid(), proc::read_mappings(child.pid()));
  ASSERT_TRUE(here.version.is_known());
  const abi::Libc asked = find_libc(child.pid());
  EXPECT_EQ(asked.version, here.version);
  EXPECT_EQ(asked.condition, here.condition);
  EXPECT_FALSE(find_libc(-1).version.is_known()) << "there is no such process";
}

TEST(FindLibc, IsAskedOncePerFile) {
  g_questions = 0;
  const Child child;
  ASSERT_GT(child.pid(), 0);
  proc::set_libc_parser(answer_always);
  for (int i = 0; i < 3; ++i) {
    const abi::Libc found = proc::libc_of(child.pid(), proc::read_mappings(child.pid()));
    EXPECT_EQ(found.version, (abi::Version{2, 99}));
  }
  proc::set_libc_parser({});
  EXPECT_EQ(g_questions, 1);
}

// A process may end before the answer, and then its libc stays unknown. Another process may have the same libc, so the
// question must be asked again. After three unknown answers about one file, the question is not asked any more.
TEST(FindLibc, AnUnknownAnswerIsAskedForAgain) {
  proc::Mapping mapping;
  mapping.path = "/made/of/test/libc.so.6";
  mapping.inode = 77;
  proc::set_libc_parser(answer_the_second_time);
  g_questions = 0;
  EXPECT_FALSE(proc::libc_of(1, {mapping}).version.is_known());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(proc::libc_of(1, {mapping}).version.is_known());
  EXPECT_EQ(g_questions, 2);
  mapping.inode = 78;
  proc::set_libc_parser(answer_never);
  g_questions = 0;
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(proc::libc_of(1, {mapping}).version.is_known());
  EXPECT_EQ(g_questions, 3) << "each question may take seconds";
  proc::set_libc_parser({});
}

// A child process that has a files::Reader parses the file of a libc itself, although its parent parses such files only
// in children.
TEST(FindLibc, IsNotAskedByAReader) {
  parse_only_in_children();
  const Answer answer = run_child(
      [](const files::Reader&) {
        const abi::Libc found = proc::libc_of(::getpid(), proc::read_mappings(::getpid()));
        return found.version.is_known() ? 0 : 1;
      },
      {.next_signal = {}, .in_child = {}, .on_output = {}, .limit = {}});
  proc::set_libc_parser({});
  EXPECT_TRUE(WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == 0) << answer.status;
}

}  // namespace
}  // namespace forksight::guard
