#include "image/stacks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hang_process.hpp"
#include "image/live.hpp"

namespace forksight::image {
namespace {

using test::HangProcess;
using test::names_of;
using test::thread_named;

// Each test runs once for each way in which hang.c is compiled.
class LiveStacks : public testing::TestWithParam<std::string> {
 protected:
  LiveStacks() : process_(std::string(IMAGE_FIXTURES) + "/image_hang_" + GetParam()) {}

  HangProcess process_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool is_approximate(const model::Stack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(),
                     [](const model::Frame& frame) { return frame.approximate; });
}

TEST_P(LiveStacks, AreCompleteWithAllRegisters) {
  const auto image = open_live(process_.pid());
  ASSERT_TRUE(image) << image.error();
  Stacks stacks(image.value());
  const auto of = [&](const char* name) {
    const model::Stack stack = stacks.of(thread_named(image.value(), name));
    EXPECT_FALSE(is_approximate(stack)) << name;
    EXPECT_FALSE(stack.cut) << name;
    return names_of(stack);
  };
  EXPECT_TRUE(contains(of("locker"), "pthread_mutex_lock take_mutex lock_thread start_thread clone3")) << of("locker");
  EXPECT_TRUE(contains(of("reader"), "read read_nothing read_thread start_thread clone3")) << of("reader");
  EXPECT_TRUE(contains(of("handler"), "read read_nothing on_signal <signal handler called> ")) << of("handler");
  EXPECT_TRUE(contains(of("handler"), "signal_thread start_thread clone3")) << of("handler");
  EXPECT_EQ(of("spinner").rfind("spin spin_thread start_thread clone3", 0), 0U) << of("spinner");
  const std::string first = names_of(stacks.of(image->threads.front()));
  EXPECT_TRUE(contains(first, "wait_for main")) << first;
  EXPECT_TRUE(first.ends_with("_start")) << first;
}

TEST_P(LiveStacks, AreFoundWithoutAStop) {
  const auto image = open_live(process_.pid(), {false, nullptr});
  ASSERT_TRUE(image) << image.error();
  Stacks stacks(image.value());
  const auto of = [&](const char* name) { return names_of(stacks.of(thread_named(image.value(), name))); };
  EXPECT_TRUE(contains(of("locker"), "pthread_mutex_lock take_mutex lock_thread start_thread clone3")) << of("locker");
  EXPECT_TRUE(contains(of("reader"), "read read_nothing read_thread start_thread clone3")) << of("reader");
  const std::string first = names_of(stacks.of(image->threads.front()));
  EXPECT_TRUE(contains(first, "wait_for main")) << first;
}

TEST_P(LiveStacks, AreFoundByPcAndRspAlone) {
  auto image = open_live(process_.pid());
  ASSERT_TRUE(image) << image.error();
  Stacks stacks(image.value());
  for (Thread& thread : image->threads) {
    const std::string whole = names_of(stacks.of(thread));
    symbols::Registers few{};
    few[symbols::kRsp] = (*thread.registers)[symbols::kRsp];
    few[symbols::kReturnAddress] = (*thread.registers)[symbols::kReturnAddress];
    thread.registers = few;
    EXPECT_EQ(names_of(stacks.of(thread)), whole) << thread.name;
  }
}

TEST_P(LiveStacks, HaveFewRegistersOfThreadsThatAreNotStopped) {
  const auto image = open_live(process_.pid(), {true, [](const Thread& thread) { return thread.name == "reader"; }});
  ASSERT_TRUE(image) << image.error();
  EXPECT_TRUE((*thread_named(image.value(), "reader").registers)[symbols::kRbp]);
  EXPECT_FALSE((*thread_named(image.value(), "locker").registers)[symbols::kRbp]);
  EXPECT_FALSE(thread_named(image.value(), "spinner").registers);
}

TEST_P(LiveStacks, SymbolsAreFoundByName) {
  const auto image = open_live(process_.pid(), {false, nullptr});
  ASSERT_TRUE(image) << image.error();
  Stacks stacks(image.value());
  const auto mutex = stacks.symbols().find_symbol("held_mutex", "image_hang");
  ASSERT_TRUE(mutex);
  // pthread_mutex_t: __lock, __count, __owner, ...
  EXPECT_EQ(image->memory->value<std::int32_t>(*mutex + 8), process_.pid());
  EXPECT_EQ(thread_named(image.value(), "locker").call->args[0], *mutex);
  const auto local = stacks.symbols().find_symbol("spin");
  symbols::CodeSymbol code;
  ASSERT_TRUE(local && stacks.symbols().find_code(*local, code));
  EXPECT_EQ(code.function, "spin");
  EXPECT_TRUE(stacks.symbols().find_symbol("pthread_mutex_lock", "libc.so"));
  EXPECT_FALSE(stacks.symbols().find_symbol("held_mutex", "libc.so"));
  EXPECT_FALSE(stacks.symbols().find_symbol("no_such_symbol"));
}

INSTANTIATE_TEST_SUITE_P(Compiled, LiveStacks, testing::Values("O0", "O2", "O0nopie", "debugframe"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forksight::image
