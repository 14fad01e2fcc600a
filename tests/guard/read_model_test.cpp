// Tests read_model(): the caller gets the model that a child process has read, or one sentence about how the child
// failed.
#include "guard/read_model.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "proc/own_process.hpp"

namespace forksight::guard {
namespace {

TEST(ReadModel, PassesOnTheModel) {
  const pid_t self = ::getpid();
  const auto done = read_model(
      [](const files::Reader&) -> Result<model::Model> {
        model::Model model;
        model.processes.emplace_back().pid = ::getpid();
        model.processes.back().ppid = ::getppid();
        model.limits.emplace_back("half of it was lost");
        return model;
      },
      {});
  ASSERT_TRUE(done.model) << done.model.error();
  EXPECT_FALSE(done.has_failed);
  EXPECT_NE(done.model->processes.at(0).pid, self);
  EXPECT_EQ(done.model->processes.at(0).ppid, self);
  EXPECT_EQ(done.model->limits.at(0), "half of it was lost");
}

TEST(ReadModel, PassesOnTheErrorOfTheChild) {
  const auto done = read_model([](const files::Reader&) -> Result<model::Model> { return Error{"no traces"}; }, {});
  ASSERT_FALSE(done.model);
  EXPECT_EQ(done.model.error(), "no traces");
  EXPECT_FALSE(done.has_failed);
}

TEST(ReadModel, SaysThatTheChildCrashed) {
  const auto done = read_model(
      [](const files::Reader&) -> Result<model::Model> {
        std::raise(SIGTRAP);  // AddressSanitizer has no handler for this signal
        return model::Model();
      },
      {});
  ASSERT_FALSE(done.model);
  EXPECT_TRUE(done.has_failed);
  EXPECT_NE(done.model.error().find("was ended by signal 5"), std::string::npos) << done.model.error();
}

TEST(ReadModel, SaysThatTheChildGaveNoAnswer) {
  for (const auto& work :
       {ReadModel([](const files::Reader&) -> Result<model::Model> { throw std::runtime_error("x"); }),
        ReadModel([](const files::Reader&) -> Result<model::Model> {
          std::fputs("m and no model", stdout);
          std::fflush(stdout);
          ::_exit(0);
        })}) {
    const auto done = read_model(work, {});
    ASSERT_FALSE(done.model);
    EXPECT_TRUE(done.has_failed);
    EXPECT_NE(done.model.error().find("no valid answer"), std::string::npos) << done.model.error();
  }
}

// The child uses no CPU time and waits for no file, so only the time limit can end it.
TEST(ReadModel, EndsAChildThatDoesNotAnswer) {
  const auto done = read_model(
      [](const files::Reader&) -> Result<model::Model> {
        for (;;) ::pause();
      },
      {.limit = std::chrono::milliseconds(300)});
  ASSERT_FALSE(done.model);
  EXPECT_TRUE(done.has_failed);
  EXPECT_NE(done.model.error().find("took too long"), std::string::npos) << done.model.error();
  EXPECT_EQ(proc::own_processes().size(), 1U);  // the child was killed and reaped
}

// Malicious data may have taken control of the child. The child's answer must not use up the memory of the process that
// waits for it.
TEST(ReadModel, EndsAChildThatAnswersWithoutEnd) {
  const auto done = read_model(
      [](const files::Reader&) -> Result<model::Model> {
        for (;;) std::fputs("m, and more and more", stdout);
      },
      {.most_bytes = 1'000'000});
  ASSERT_FALSE(done.model);
  EXPECT_TRUE(done.has_failed);
  EXPECT_NE(done.model.error().find("too many bytes"), std::string::npos) << done.model.error();
  EXPECT_EQ(proc::own_processes().size(), 1U);  // the child was killed and reaped
}

// A process that the child started may still have the child's pipes open when the child has ended.
TEST(ReadModel, DoesNotWaitForAChildOfTheChild) {
  const auto done = read_model(
      [](const files::Reader&) -> Result<model::Model> {
        const pid_t left = ::fork();
        if (left == 0) {
          ::alarm(20);
          ::pause();
        }
        model::Model model;
        model.processes.emplace_back().pid = left;
        return model;
      },
      {});
  ASSERT_TRUE(done.model) << done.model.error();
  EXPECT_EQ(::kill(done.model->processes.at(0).pid, SIGKILL), 0);
}

}  // namespace
}  // namespace forksight::guard
