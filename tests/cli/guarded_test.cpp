// run_guarded(): what the caller sees of a child that ends well, fails, crashes, or is asked to end.
#include "command/guarded.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

namespace forksight {
namespace {

struct Ended {
  int status = 0;    // as of wait(2)
  std::string text;  // standard output and standard error
};

// Calls run_guarded() in a process of its own.
Ended run(const std::function<int()>& work) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    const int status = run_guarded(work);
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(ends[1]);
  Ended ended;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;)
    ended.text.append(piece.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  return ended;
}

TEST(Guarded, PassesOnStatusAndOutput) {
  const pid_t self = ::getpid();
  const Ended ended = run([&] {
    std::printf("report\n");
    std::fprintf(stderr, "progress\n");
    return ::getppid() == self ? 9 : 1;  // 1: in a child of the process that has called run_guarded()
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
  EXPECT_NE(ended.text.find("report\n"), std::string::npos);
  EXPECT_NE(ended.text.find("progress\n"), std::string::npos);
}

TEST(Guarded, PassesOnMoreThanAPipeHolds) {
  const std::string line(1023, 'x');
  const Ended ended = run([&] {
    for (int i = 0; i < 1024; ++i) std::puts(line.c_str());
    return 0;
  });
  EXPECT_EQ(ended.text.size(), 1024U * 1024U);
}

// A program that ignores SIGCHLD may have started forksight.
TEST(Guarded, LearnsTheStatusAlthoughSIGCHLDIsIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int status = run_guarded([] { return 1; });
    const bool is_ignored = std::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    const char answer[2] = {static_cast<char>('0' + status), is_ignored ? 'i' : 'd'};
    ::_exit(::write(ends[1], answer, 2) == 2 ? 0 : 9);
  }
  ::close(ends[1]);
  std::array<char, 2> answer{};
  EXPECT_EQ(::read(ends[0], answer.data(), answer.size()), 2);
  EXPECT_EQ(std::string(answer.data(), 2), "1i");
  ::close(ends[0]);
  std::signal(SIGCHLD, before);
}

TEST(Guarded, SaysThatTheReaderCrashed) {
  const Ended ended = run([] {
    std::printf("half of a rep");
    std::fflush(stdout);
    std::raise(SIGSEGV);
    return 0;
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("was ended by signal 11"), std::string::npos) << ended.text;
}

TEST(Guarded, SaysWhatAnExceptionSays) {
  const Ended ended = run([]() -> int { throw std::runtime_error("libfoo.so: cut off"); });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("libfoo.so: cut off"), std::string::npos) << ended.text;
}

// The signal is for the process that was started, and ends both.
TEST(Guarded, EndsWithItsChildAtASignal) {
  const Ended ended = run([] {
    std::printf("%d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
    ::kill(::getppid(), SIGTERM);
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGTERM);
  const pid_t reader = std::atoi(ended.text.c_str());
  EXPECT_TRUE(reader == 0 || ::kill(reader, 0) != 0);
}

// A signal that the reader blocks ends it all the same, a moment later.
TEST(Guarded, EndsAReaderThatDoesNotHear) {
  const Ended ended = run([] {
    std::signal(SIGTERM, SIG_IGN);
    ::kill(::getppid(), SIGTERM);
    for (;;) ::pause();
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status));
}

}  // namespace
}  // namespace forksight
