// Tests that names of C++ are demangled, except names that are too long, or whose demangled text would be too long.
#include "symbols/demangle.hpp"

#include <cxxabi.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace forksight::symbols {
namespace {

// The name of a function with `count` + 1 parameters. The first is p<int, int>, and each other one is p<X, X>, where X
// is the type of the parameter before it. So each parameter is twice as long as the one before.
std::string doubling_name(int count) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1pIiiE";
  for (int i = 0; i < count; ++i) {
    const std::string before = i < 36 ? std::string(1, kDigits[i]) : std::string("1") + kDigits[i - 36];
    name += "S_IS" + before + "_S" + before + "_E";
  }
  return name;
}

std::string text_of(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return text.get();
}

TEST(Demangle, ReadsNames) {
  EXPECT_EQ(demangle("_ZN3app4workEi"), "app::work(int)");
  EXPECT_EQ(demangle("main"), std::nullopt);
  EXPECT_EQ(demangle("_Zno name"), std::nullopt);
}

TEST(Demangle, ReadsNamesWithManyReferences) {
  for (int count = 0; count <= 8; ++count) {
    const std::string name = doubling_name(count);
    EXPECT_TRUE(demangle(name.c_str()) == text_of(name)) << count;
  }
}

TEST(Demangle, ANameThatStandsForGigabytesIsNotRead) {
  const std::string warning = doubling_name(12);
  EXPECT_GT(text_of(warning).size(), kMaxNameBytes);
  EXPECT_EQ(demangle(warning.c_str()), std::nullopt);
  for (int count = 30; count <= 60; ++count) EXPECT_EQ(demangle(doubling_name(count).c_str()), std::nullopt);
  struct rusage usage {};
  ASSERT_EQ(::getrusage(RUSAGE_CHILDREN, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 512 << 10);
  EXPECT_LT(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec, 10);
}

TEST(Demangle, ANameThatIsTooLongIsNotRead) {
  EXPECT_EQ(demangle(("_Z60000" + std::string(60'000, 'x') + "v").c_str()), std::nullopt);
}

}  // namespace
}  // namespace forksight::symbols
