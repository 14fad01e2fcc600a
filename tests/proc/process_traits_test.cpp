// Tests what a proof needs to know about a process: what it has mapped.
#include "proc/process_traits.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "proc/proc_text.hpp"

namespace forksight::proc {
namespace {

TEST(ProcessTraits, MappingsTellOfIoUringAndGlibc) {
  const auto mapped = [](const char* line) { return std::vector<Mapping>{parse_mapping(line).value()}; };
  const auto ring = mapped("1000-2000 rw-s 00000000 00:0e 7 anon_inode:[io_uring]");
  const auto glibc = mapped("1000-2000 r-xp 00000000 fe:00 7 /usr/lib/x86_64-linux-gnu/libc.so.6");
  const auto old_glibc = mapped("1000-2000 r-xp 00000000 fe:00 7 /lib/x86_64-linux-gnu/libc-2.31.so");
  const auto musl = mapped("1000-2000 r-xp 00000000 fe:00 7 /lib/ld-musl-x86_64.so.1");
  EXPECT_TRUE(has_io_uring(ring));
  EXPECT_FALSE(has_io_uring(glibc));
  EXPECT_TRUE(has_libc(glibc));
  EXPECT_TRUE(has_libc(old_glibc));
  EXPECT_FALSE(has_libc(musl));
}

}  // namespace
}  // namespace forksight::proc
