// Tests the symbolizer with files that are missing or have changed, and with bytes that are not a stack.
#include <gtest/gtest.h>

#include <random>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

TEST(Hostile, SaysOnceThatAFileHasChanged) {
  Dump dump = run_fixture("O2");
  for (Module& module : dump.modules) {
    if (module.path == dump.program) module.build_id[0] ^= 1U;
  }
  Symbolizer symbolizer(dump.modules);
  const model::Stack stack = symbolizer.unwind(dump.sample("template"));
  symbolizer.unwind(dump.sample("recursion"));
  DataSymbol data;
  EXPECT_FALSE(symbolizer.find_data(dump.data.at("global"), data));
  ASSERT_FALSE(stack.frames.empty());
  EXPECT_EQ(stack.frames[0].function, "");
  EXPECT_EQ(stack.frames[0].module, dump.program);
  ASSERT_EQ(symbolizer.limits().size(), 1U);
  EXPECT_NE(symbolizer.limits()[0].find(dump.program), std::string::npos);
  EXPECT_NE(symbolizer.limits()[0].find("build-id"), std::string::npos);
}

TEST(Hostile, SaysOnceThatAFileIsGone) {
  Dump dump = run_fixture("O2");
  for (Module& module : dump.modules) {
    if (module.path == dump.program) module.path += ".gone";
  }
  Symbolizer symbolizer(dump.modules);
  const model::Stack stack = symbolizer.unwind(dump.sample("template"));
  symbolizer.unwind(dump.sample("inlined"));
  ASSERT_FALSE(stack.frames.empty());
  EXPECT_EQ(stack.frames[0].module, dump.program + ".gone");
  ASSERT_EQ(symbolizer.limits().size(), 1U);
  EXPECT_NE(symbolizer.limits()[0].find("No such file"), std::string::npos);
}

TEST(Hostile, SaysNothingAboutModulesThatAreNotNeeded) {
  Dump dump = run_fixture("O2");
  dump.modules.push_back({"/nonexistent/module.so", 0x10000, 0x10000, 0x20000, {}});
  Symbolizer symbolizer(dump.modules);
  symbolizer.unwind(dump.sample("template"));
  EXPECT_TRUE(symbolizer.limits().empty());
}

TEST(Hostile, RefusesFilesThatAreNotElfFiles) {
  for (const char* path : {"/dev/zero", "/etc/passwd", "/proc/self/mem", "/", "relative", ""}) {
    Symbolizer symbolizer({{path, 0x1000, 0x1000, 0x9000, {}}});
    CodeSymbol code;
    EXPECT_FALSE(symbolizer.find_code(0x2000, code)) << path;
  }
}

TEST(Hostile, SurvivesImpossibleModules) {
  const Dump dump = run_fixture("O2");
  std::vector<Module> modules = dump.modules;
  const std::uint64_t top = ~std::uint64_t{0};
  modules.push_back({dump.program, 5, 0, top, {}});
  modules.push_back({dump.program, top, top - 4096, top, {}});
  modules.push_back({dump.program, 0, 100, 50, {}});
  modules.push_back({dump.program, 0, 0, 0, {}});
  Symbolizer symbolizer(modules);
  CodeSymbol code;
  DataSymbol data;
  for (std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}, top, top - 1, top - 4000, std::uint64_t{60}}) {
    symbolizer.find_code(address, code);
    symbolizer.find_data(address, data);
    symbolizer.unwind({address, address, address, {}, false, true});
  }
}

TEST(Hostile, ASampleWithoutBytesGivesOnlyTheFramesOfItsAddress) {
  const Dump dump = run_fixture("O2");
  Symbolizer symbolizer(dump.modules);
  EXPECT_FALSE(symbolizer.unwind({}).known());
  for (const bool frozen : {false, true}) {
    StackSample sample = dump.sample("inlined");
    sample.memory = {};
    sample.cut = true;
    sample.frozen = frozen;
    const model::Stack stack = symbolizer.unwind(sample);
    ASSERT_EQ(stack.frames.size(), 3U) << describe(stack);
    EXPECT_EQ(stack.frames[2].function, "app::uses_inlines");
    EXPECT_TRUE(stack.cut);
  }
}

TEST(Hostile, RandomBytesGiveOnlyTheFramesOfTheFirstAddress) {
  const Dump dump = run_fixture("O0");
  Symbolizer symbolizer(dump.modules);
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    StackSample sample = dump.sample("guard");
    std::vector<std::byte> bytes(random() % 4096);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    sample.memory = bytes;
    sample.frozen = true;
    sample.cut = round % 2 == 0;
    const model::Stack stack = symbolizer.unwind(sample);
    ASSERT_FALSE(stack.frames.empty());
    EXPECT_EQ(stack.frames[0].function, "app::Mutex::native_lock");
    for (const model::Frame& frame : stack.frames) EXPECT_EQ(frame.offset, stack.frames[0].offset) << describe(stack);
    EXPECT_TRUE(stack.cut);
  }
}

// Exchanges words of a recorded stack, so that return addresses stand in wrong places. The unwinder must not loop for ever.
TEST(Hostile, ShuffledStacksEnd) {
  const Dump dump = run_fixture("O0");
  Symbolizer symbolizer(dump.modules);
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    StackSample sample = dump.sample(round % 2 == 0 ? "guard" : "recursion");
    std::vector<std::byte> bytes(sample.memory.begin(), sample.memory.end());
    for (std::size_t at = 0; at + 16 <= bytes.size(); at += 8) {
      if (random() % 3 != 0) continue;
      const std::size_t other = random() % (bytes.size() / 8 - 1) * 8;
      std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at) + 8,
                       bytes.begin() + static_cast<std::ptrdiff_t>(other));
    }
    sample.memory = bytes;
    sample.frozen = random() % 2 == 0;
    if (round % 7 == 0) ++sample.sp;
    if (round % 11 == 0) sample.fp = random();
    const model::Stack stack = symbolizer.unwind(sample);
    EXPECT_FALSE(stack.frames.empty());
  }
}

}  // namespace
}  // namespace forksight::symbols
