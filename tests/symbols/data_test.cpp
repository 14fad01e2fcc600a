// Tests that the symbolizer finds the names of locks and of thread start routines.
#include <gtest/gtest.h>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

class Data : public testing::TestWithParam<const char*> {};

TEST_P(Data, NamesObjects) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  const std::map<std::string, std::string> expected = {
      {"global", "app::global_lock"},
      {"member", "app::queue.mutex"},
      {"file", "app::file_lock"},
      {"nameless", "app::(anonymous namespace)::nameless_lock"},
      {"element", "app::shards[2].inner.mutex"},
      {"base", "app::derived.mutex"},
      {"guarded", "app::guarded.mutex"},
      {"first", "app::guarded.mutex"},
      {"plain", "app::plain_mutexes[1]"},
      {"local", "app::local_static::instance.words"},
      {"exported", "library::exported_lock"},
      {"hidden", "library::hidden_lock+0x8"},
  };
  for (const auto& [label, name] : expected) {
    DataSymbol symbol;
    ASSERT_TRUE(symbolizer.find_data(dump.data.at(label), symbol)) << label;
    EXPECT_EQ(symbol.name, name);
    EXPECT_FALSE(symbol.module.empty());
  }
}

TEST_P(Data, NamesFunctions) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  CodeSymbol symbol;
  ASSERT_TRUE(symbolizer.find_code(dump.code.at("thread"), symbol));
  EXPECT_EQ(symbol.function, "app::frozen_thread");
  EXPECT_EQ(symbol.module, dump.program);
  ASSERT_TRUE(symbolizer.find_code(dump.code.at("plain"), symbol));
  EXPECT_EQ(symbol.function, "app::scribble");
}

TEST_P(Data, DoesNotNameAddressesOfAnotherKind) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  DataSymbol data;
  CodeSymbol code;
  EXPECT_FALSE(symbolizer.find_data(dump.code.at("plain"), data));
  EXPECT_FALSE(symbolizer.find_code(dump.data.at("global"), code));
  EXPECT_FALSE(symbolizer.find_data(dump.sample("template").sp, data));  // a stack is in no module
  EXPECT_FALSE(symbolizer.find_data(0, data));
  EXPECT_FALSE(symbolizer.find_code(~std::uint64_t{0}, code));
}

TEST_P(Data, SaysWhetherAFunctionMayBeImported) {
  constexpr std::string_view kSetters[] = {"signal", "sigaction"};
  const Dump scenes = run_fixture(GetParam(), "scenes");
  EXPECT_TRUE(Symbolizer(scenes.modules).may_import(kSetters));
  Dump locks = run_fixture(GetParam(), "locks");
  EXPECT_FALSE(Symbolizer(locks.modules).may_import(kSetters));  // may_import() does not look into libc
  constexpr std::string_view kOther[] = {"pthread_cond_clockwait"};
  EXPECT_TRUE(Symbolizer(locks.modules).may_import(kOther));
  locks.modules.front().path += ".gone";
  EXPECT_TRUE(Symbolizer(locks.modules).may_import(kSetters));
}

INSTANTIATE_TEST_SUITE_P(Compiled, Data, testing::Values("O0", "O2", "O2nopie"),
                         [](const auto& test) { return std::string(test.param); });

TEST(DataStripped, ExportedObjectsKeepTheirNames) {
  const Dump dump = run_fixture("stripped");
  Symbolizer symbolizer(dump.modules);
  DataSymbol symbol;
  ASSERT_TRUE(symbolizer.find_data(dump.data.at("exported"), symbol));
  EXPECT_EQ(symbol.name, "library::exported_lock");
  ASSERT_TRUE(symbolizer.find_data(dump.data.at("exported") + 12, symbol));
  EXPECT_EQ(symbol.name, "library::exported_lock+0xc");
  EXPECT_FALSE(symbolizer.find_data(dump.data.at("global"), symbol));
}

}  // namespace
}  // namespace forksight::symbols
