// The version and the layouts of a glibc are found out from the code in its file.
#include "libc/libc_file.hpp"

#include <gtest/gtest.h>
#include <link.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "forksight/abi/condition.hpp"
#include "support/this_libc.hpp"

namespace forksight::libc {
namespace {

std::string path_of(std::string_view ending) {
  struct Search {
    std::string_view ending;
    std::string path;
  } search{ending, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& to = *static_cast<Search*>(data);
        if (std::string_view(info->dlpi_name).ends_with(to.ending)) to.path = info->dlpi_name;
        return 0;
      },
      &search);
  return search.path;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

TEST(LibcFile, AnswersAsTheLibcItselfDoes) {
  const abi::Libc asked = test::this_libc();
  const abi::Libc read = read_libc_file(path_of("/libc.so.6"));
  EXPECT_TRUE(read.version == asked.version) << int{read.version.minor};
  EXPECT_EQ(read.condition, asked.condition);
}

TEST(LibcFile, KnowsNothingOfOtherFiles) {
  for (const std::string& path : {path_of("/libstdc++.so.6"), std::string("/dev/null"), std::string("/none"),
                                  std::string("/proc/self/maps"), std::string("/tmp")}) {
    const abi::Libc read = read_libc_file(path);
    EXPECT_FALSE(read.version.is_known()) << path;
    EXPECT_EQ(read.condition, abi::ConditionKind::kUnknown) << path;
  }
}

TEST(LibcFile, IsKnownByName) {
  EXPECT_TRUE(is_libc_name("/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(is_libc_name("/lib64/libc-2.31.so"));
  EXPECT_FALSE(is_libc_name("/lib/ld-musl-x86_64.so.1"));
  EXPECT_FALSE(is_libc_name("/usr/lib/libcap.so.2"));
}

// pthread_cond_signal() first loads the word wrefs. The test changes the offset in each such load of the file: to the
// offset of the other layout, then to 12, where no layout has this word.
TEST(LibcFile, TellsTheLayoutByTheCode) {
  std::vector<std::byte> bytes = bytes_of(path_of("/libc.so.6"));
  const abi::ConditionKind here = read_libc(bytes).condition;
  ASSERT_NE(here, abi::ConditionKind::kUnknown);
  const bool has_references = here == abi::ConditionKind::kWithReferences;
  const auto own =
      std::byte(has_references ? abi::kConditionWithReferences.wrefs : abi::kConditionWithoutReferences.wrefs);
  const auto other = has_references ? abi::ConditionKind::kWithoutReferences : abi::ConditionKind::kWithReferences;
  const auto change_to = [&](std::uint8_t offset) {
    std::vector<std::byte> changed = bytes;
    for (std::size_t i = 0; i + 3 < changed.size(); ++i) {
      const bool is_load = changed[i] == std::byte{0x8b} && (changed[i + 1] & std::byte{0xc7}) == std::byte{0x47};
      if (is_load && changed[i + 2] == own) changed[i + 2] = std::byte{offset};
    }
    return read_libc(changed).condition;
  };
  EXPECT_EQ(change_to(abi::layout_of(other)->wrefs), other);
  EXPECT_EQ(change_to(12), abi::ConditionKind::kUnknown);
}

TEST(LibcFile, IsUntrusted) {
  const std::vector<std::byte> good = bytes_of(path_of("/libc.so.6"));
  std::mt19937 random(20'261'122);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::byte> bytes = good;
    for (int change = 0; change < 64; ++change) {
      // Most changes hit the header of the file, at its beginning, or the headers of the sections, at its end.
      const std::size_t where = random() % 3;
      const std::size_t at = where == 0   ? random() % 1024
                             : where == 1 ? bytes.size() - 1 - random() % 4096
                                          : random() % bytes.size();
      bytes[at] = static_cast<std::byte>(random());
    }
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    read_libc(bytes);
  }
}

}  // namespace
}  // namespace forksight::libc
