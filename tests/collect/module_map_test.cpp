#include "collect/module_map.hpp"

#include <gtest/gtest.h>

namespace forksight::collect {
namespace {

symbols::Module module(const char* path, std::uint64_t start, std::uint64_t end) {
  return {path, start, start, end, {}};
}

TEST(ModuleMap, FindsByAddressAndByBias) {
  ModuleMap map;
  map.add(0, module("/a", 0x1000, 0x2000));
  map.add(0, module("/b", 0x2000, 0x3000));
  EXPECT_EQ(map.image_of(0)->find_path(0x1fff), "/a");
  EXPECT_EQ(map.image_of(0)->find_path(0x2000), "/b");
  EXPECT_EQ(map.image_of(0)->find_path(0x3000), "");
  EXPECT_EQ(map.image_of(0)->find_path_by_bias(0x2000), "/b");
}

TEST(ModuleMap, AnEarlierImageKeepsAModuleThatIsReplacedLater) {
  ModuleMap map;
  map.add(0, module("/plugin-1", 0x1000, 0x2000));
  const ImagePtr before = map.image_of(0);
  map.add(0, module("/plugin-2", 0x1800, 0x2800));
  EXPECT_EQ(before->find_path(0x1900), "/plugin-1");
  EXPECT_EQ(map.image_of(0)->find_path(0x1900), "/plugin-2");
  EXPECT_EQ(map.image_of(0)->find_path(0x1100), "");
}

TEST(ModuleMap, AModuleAtUnusedAddressesIsAddedToTheSameImage) {
  ModuleMap map;
  map.add(0, module("/a", 0x1000, 0x2000));
  const ImagePtr before = map.image_of(0);
  map.add(0, module("/b", 0x5000, 0x6000));
  EXPECT_EQ(before, map.image_of(0));
  map.add(0, module("/b", 0x5000, 0x6000));
  EXPECT_EQ(before->modules.size(), 2U);
}

TEST(ModuleMap, ParentAndChildMayMapDifferentThingsAtOneAddress) {
  ModuleMap map;
  map.add(0, module("/app", 0x1000, 0x2000));
  map.inherit(1, 0);
  map.add(1, module("/of-child", 0x7000, 0x8000));
  map.add(0, module("/of-parent", 0x7000, 0x8000));
  EXPECT_EQ(map.image_of(1)->find_path(0x7000), "/of-child");
  EXPECT_EQ(map.image_of(0)->find_path(0x7000), "/of-parent");
  EXPECT_EQ(map.image_of(0)->find_path(0x1000), "/app");
}

TEST(ModuleMap, IsBounded) {
  ModuleMap map;
  std::size_t left_out = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    left_out += map.add(0, module("/m", i * 0x1000, (i + 1) * 0x1000)) ? 0U : 1U;
  EXPECT_EQ(left_out, 10'000U - 8192U);
  left_out = 0;
  for (std::uint64_t i = 0; i < 400; ++i) left_out += map.add(1, module("/m", 0x1000, 0x2001 + i)) ? 0U : 1U;
  EXPECT_GT(left_out, 0U);
}

}  // namespace
}  // namespace forksight::collect
