// Tests whether forksight finds Python's default handler of SIGINT in a made-up table of an interpreter's signal
// handlers.
#include "proc/python_interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace forksight::proc {
namespace {

constexpr std::uint64_t kDefault = 0x7000, kIgnore = 0x7020, kHandler = 0x8000, kType = 0x9000, kMethod = 0xa000;
constexpr std::uint64_t kTypeName = 0xb000, kMethodName = 0xc000, kNumberType = 0xd000, kNumberTypeName = 0xe000;
constexpr std::size_t kBefore = 7;  // words

struct Interpreter {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kBefore + 2 * 65 + 3);
  std::map<std::uint64_t, std::uint64_t> memory = {
      {kHandler, 1},          {kHandler + 8, kType},       {kHandler + 16, kMethod},           {kType + 24, kTypeName},
      {kMethod, kMethodName}, {kDefault + 8, kNumberType}, {kNumberType + 24, kNumberTypeName}};
  std::map<std::uint64_t, std::string> texts = {
      {kNumberTypeName, "int"}, {kTypeName, "builtin_function_or_method"}, {kMethodName, "default_int_handler"}};

  Interpreter() {
    for (int signal = 1; signal < 65; ++signal) set(signal, kDefault);
    set(SIGPIPE, kIgnore);
    set(SIGINT, kHandler);
  }
  void set(int signal, std::uint64_t function) { words[kBefore + 2 * static_cast<std::size_t>(signal) + 1] = function; }

  std::optional<bool> find() const {
    const auto handlers = find_handlers();
    return handlers ? std::optional(handlers->has_default_interrupt) : std::nullopt;
  }
  std::optional<PythonHandlers> find_handlers() const {
    return find_python_handlers(words, [&](std::uint64_t address, std::span<std::byte> out) {
      if (const auto text = texts.find(address); text != texts.end() && out.size() == text->second.size() + 1) {
        std::memcpy(out.data(), text->second.c_str(), out.size());
        return true;
      }
      for (std::size_t done = 0; done < out.size(); done += 8) {
        const auto word = memory.find(address + done);
        if (word == memory.end()) return false;
        std::memcpy(out.data() + done, &word->second, 8);
      }
      return true;
    });
  }
};

TEST(PythonInterrupt, KnowsTheDefaultHandler) { EXPECT_EQ(Interpreter().find(), true); }

// In CPython without the GIL the header of an object is longer.
TEST(PythonInterrupt, KnowsTheDefaultHandlerWithoutTheGil) {
  Interpreter other;
  other.memory = {{kHandler, 1},
                  {kHandler + 8, 2},
                  {kHandler + 16, 3},
                  {kHandler + 24, kType},
                  {kHandler + 32, kMethod},
                  {kType + 40, kTypeName},
                  {kMethod, kMethodName},
                  {kDefault + 24, kNumberType},
                  {kNumberType + 40, kNumberTypeName}};
  EXPECT_EQ(other.find(), true);
  other.texts[kMethodName] = "default_int_handles";
  EXPECT_EQ(other.find(), false);
}

TEST(PythonInterrupt, KnowsAHandlerOfTheScript) {
  Interpreter other;
  other.texts[kMethodName] = "default_int_handles";
  EXPECT_EQ(other.find(), false);
  Interpreter function;
  function.texts[kTypeName] = "function";
  EXPECT_EQ(function.find(), false);
  Interpreter none;
  none.set(SIGINT, kDefault);
  EXPECT_EQ(none.find(), false);
}

// A shell starts background commands with SIGINT and SIGQUIT ignored. nohup ignores SIGHUP. gunicorn handles SIGQUIT.
TEST(PythonInterrupt, KnowsTheTableOfAProgramThatBeganWithIgnoredSignals) {
  for (int signal = 1; signal < 32; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGINT) continue;
    Interpreter other;
    for (const std::uint64_t function : {kIgnore, kHandler}) {
      other.set(signal, function);
      EXPECT_EQ(other.find(), true) << signal;
    }
    other.texts[kMethodName] = "default_int_handles";
    EXPECT_EQ(other.find(), false) << signal;
  }
}

// A part of the table that begins at a later entry also looks like a table, in which other signals have these
// functions. If the table itself is not recognised, such a part must not be taken for the table.
TEST(PythonInterrupt, DoesNotTakeAPartOfTheTableForTheTable) {
  Interpreter torn;
  torn.set(SIGKILL, kIgnore);
  EXPECT_EQ(torn.find(), std::nullopt);
}

TEST(PythonInterrupt, SaysNothingWithoutATable) {
  Interpreter torn;
  torn.set(SIGSTOP, kIgnore);
  EXPECT_EQ(torn.find(), std::nullopt);
  Interpreter not_a_number;
  not_a_number.texts[kNumberTypeName] = "str";
  EXPECT_EQ(not_a_number.find(), std::nullopt);
  EXPECT_FALSE(find_python_handlers({}, [](auto, auto) { return false; }));
}

// The kernel's handler of SIGABRT may be the one of faulthandler or one of the script.
TEST(PythonHandlers, KnowAHandlerOfSigabrt) {
  Interpreter one;
  EXPECT_FALSE(one.find_handlers()->handles_abort);
  one.set(SIGABRT, kHandler);
  EXPECT_TRUE(one.find_handlers()->handles_abort);
  one.texts[kTypeName] = "function";
  EXPECT_TRUE(one.find_handlers()->handles_abort);
  one.texts[kTypeName] = "NoneType";
  EXPECT_FALSE(one.find_handlers()->handles_abort) << "faulthandler was on before the interpreter began";
}

}  // namespace
}  // namespace forksight::proc
