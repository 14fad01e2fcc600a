#include "inspect/pthreads.hpp"

#include <gtest/gtest.h>

#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using test::kHeap;
using test::MadeProcess;

constexpr std::uint64_t kUsual = 0x2d0;

// Threads at known places, whose tids are nowhere yet.
MadeProcess threads_without_tids() {
  MadeProcess process(1000, 1);
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t pointer = kHeap + 0x1000 * static_cast<std::uint64_t>(i + 1);
    process.add_thread_at(pointer, 1000 + i, {"pause", "made_main"});
    process.put_word(pointer + kUsual, 0);
  }
  return process;
}

void put_tids(MadeProcess& process, std::uint64_t offset) {
  for (const image::Thread& thread : process.image.threads) {
    process.put_word(thread.fs_base + offset, static_cast<std::uint32_t>(thread.tid));
  }
}

TEST(TidOffset, IsWhereAllThreadsHaveTheirs) {
  for (const std::uint64_t offset : {kUsual, std::uint64_t{0x80}, std::uint64_t{0x8f8}, std::uint64_t{0x308}}) {
    MadeProcess process = threads_without_tids();
    put_tids(process, offset);
    EXPECT_EQ(find_tid_offset(process.image), offset);
  }
}

TEST(TidOffset, IsNotWhereOnlySomeHaveTheirs) {
  MadeProcess process = threads_without_tids();
  put_tids(process, 0x308);
  process.put_word(process.image.threads[1].fs_base + 0x308, 7);
  EXPECT_FALSE(find_tid_offset(process.image));
}

TEST(TidOffset, IsUnknownBeyondWhatIsSearchedAndWithoutPointers) {
  MadeProcess process = threads_without_tids();
  put_tids(process, 0x900);
  EXPECT_FALSE(find_tid_offset(process.image));
  put_tids(process, kUsual);
  ASSERT_TRUE(find_tid_offset(process.image));
  for (image::Thread& thread : process.image.threads) thread.fs_base = 0;
  EXPECT_FALSE(find_tid_offset(process.image));
  for (image::Thread& thread : process.image.threads) thread.fs_base = ~std::uint64_t{0} - 8;
  EXPECT_FALSE(find_tid_offset(process.image));
}

struct Fork {
  Fork() : parent(1000, 1), child(2000, 1000) {
    parent.add_thread_at(kHeap + 0x1000, 1000, {"pause", "made_main"});
    parent.add_thread_at(kHeap + 0x2000, 1001, {"pause", "made_worker"});
  }

  MadeProcess parent;
  MadeProcess child;
};

TEST(ForkingThread, HasTheStructOfTheChildsFirst) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x2000, 2000, {"pause", "made_worker"});
  fork.child.add_thread_at(kHeap + 0x1000, 2001, {"pause", "made_main"});
  EXPECT_EQ(find_forking_thread(fork.child.image, fork.parent.image), 1001);
}

TEST(ForkingThread, IsUnknownIfItHasEnded) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x2000, 2000, {"pause", "made_worker"});
  fork.parent.image.threads.pop_back();
  EXPECT_EQ(find_forking_thread(fork.child.image, fork.parent.image), 0);
}

TEST(ForkingThread, IsUnknownIfTheChildsIsNotInTheParentsMemory) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x9000, 2000, {"pause", "made_worker"});
  EXPECT_EQ(find_forking_thread(fork.child.image, fork.parent.image), 0);
  fork.child.image.threads.front().fs_base = 0;
  EXPECT_EQ(find_forking_thread(fork.child.image, fork.parent.image), 0);
  fork.child.image.threads.clear();
  EXPECT_EQ(find_forking_thread(fork.child.image, fork.parent.image), 0);
}

TEST(Layout, IsThatOfTheSameProgramAtTheSamePlaces) {
  Fork fork;
  EXPECT_TRUE(is_same_layout(fork.child.image, fork.parent.image));
  // Something was loaded since.
  symbols::Module late;
  late.path = "/usr/lib/late.so";
  late.bias = 0x1000;
  fork.child.image.modules.insert(fork.child.image.modules.begin(), late);
  EXPECT_TRUE(is_same_layout(fork.child.image, fork.parent.image));
  // Run again, elsewhere.
  for (symbols::Module& module : fork.child.image.modules) module.bias += 0x1000;
  EXPECT_FALSE(is_same_layout(fork.child.image, fork.parent.image));
}

TEST(Layout, IsNotThatOfAnotherProgramOrOfNone) {
  Fork fork;
  fork.child.image.exe = "/usr/bin/other";
  EXPECT_FALSE(is_same_layout(fork.child.image, fork.parent.image));
  fork.child.image.exe.clear();
  fork.parent.image.exe.clear();
  EXPECT_FALSE(is_same_layout(fork.child.image, fork.parent.image));
  Fork bare;
  bare.child.image.modules.clear();
  EXPECT_FALSE(is_same_layout(bare.child.image, bare.parent.image));
}

}  // namespace
}  // namespace forksight::inspect
