// Tests the functions of result that a caller may use without checking first whether the result has a value or an
// error.
#include "forksight/ipc/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace forksight::ipc {
namespace {

error late() { return {errc::timeout, 0, 0, "too late"}; }

TEST(Result, ValueOrGivesTheAlternativeOnlyForAnError) {
  const result<int> seven = 7;
  const result<int> none = late();
  EXPECT_EQ(seven.value_or(3), 7);
  EXPECT_EQ(none.value_or(3), 3);
  EXPECT_EQ(result<std::string>(late()).value_or("nothing"), "nothing");
  EXPECT_EQ(*seven, 7);
  const result<std::string> word = std::string("seven");
  EXPECT_EQ(word->size(), 5u);
}

TEST(Result, ValueOrWorksForTypesThatCannotBeCopied) {
  result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  const std::unique_ptr<int> got = std::move(made).value_or(nullptr);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, 5);
  EXPECT_EQ(result<std::unique_ptr<int>>(late()).value_or(nullptr), nullptr);
}

TEST(Result, AndThenCallsTheFunctionWithTheValue) {
  result<int> seven = 7;
  const auto text = seven.and_then([](int& value) -> result<std::string> { return std::to_string(++value); });
  EXPECT_EQ(text.value(), "8");
  EXPECT_EQ(seven.value(), 8);
  const auto moved = result<std::unique_ptr<int>>(std::make_unique<int>(5)).and_then([](std::unique_ptr<int> own) {
    return result<int>(*own);
  });
  EXPECT_EQ(moved.value(), 5);
}

TEST(Result, AndThenStopsAtTheFirstError) {
  int calls = 0;
  const auto ended = result<int>(1)
                         .and_then([&](int) -> result<int> {
                           ++calls;
                           return late();
                         })
                         .and_then([&](int) -> result<int> {
                           ++calls;
                           return 2;
                         });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ended.error().text, "too late");
}

TEST(Result, AndThenWorksForVoid) {
  EXPECT_EQ(result<void>().and_then([] { return result<int>(4); }).value(), 4);
  bool is_called = false;
  const auto ended = result<void>(late()).and_then([&] {
    is_called = true;
    return result<int>(4);
  });
  EXPECT_FALSE(is_called);
  EXPECT_EQ(ended.error().code, errc::timeout);
}

}  // namespace
}  // namespace forksight::ipc
