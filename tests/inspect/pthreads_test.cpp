#include "inspect/pthreads.hpp"

#include <gtest/gtest.h>

#include "inspect/lost_pthreads.hpp"
#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using test::kHeap;
using test::MadeProcess;

constexpr std::uint64_t kUsual = 0x2d0;

// A process whose threads have their structs at known addresses. The structs have no tids yet.
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

TEST(TidOffset, IsUnknownBeyondTheSearchedRangeAndWithoutPointers) {
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

// A process of a container, as in a core that was made outside of the container. The structs of the threads contain the
// thread ids inside the container. The core lists the thread ids outside of the container.
struct Contained {
  explicit Contained(int count) : process(1000, 1) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t pointer = kHeap + 0x1000 * static_cast<std::uint64_t>(i + 1);
      process.add_thread_at(pointer, 1000 + i, {"pause", "made_main"});
      process.put_word(pointer, static_cast<std::uint32_t>(pointer));
      process.put_word(pointer + 4, static_cast<std::uint32_t>(pointer >> 32U));
      process.put_word(pointer + 16, static_cast<std::uint32_t>(pointer));
      process.put_word(pointer + 20, static_cast<std::uint32_t>(pointer >> 32U));
      number(i, 7 + i);
    }
  }
  void number(int thread, int tid) {
    process.put_word(kHeap + 0x1000 * static_cast<std::uint64_t>(thread + 1) + kUsual, static_cast<std::uint32_t>(tid));
  }
  std::vector<std::int32_t> find(bool is_forked) {
    find_own_numbers(process.image, is_forked);
    std::vector<std::int32_t> numbers;
    for (const image::Thread& thread : process.image.threads) numbers.push_back(thread.own_tid);
    return numbers;
  }
  MadeProcess process;
};

using Numbers = std::vector<std::int32_t>;

TEST(OwnNumbers, AreThoseInTheStructsOfAllThreads) {
  EXPECT_EQ(Contained(3).find(false), (Numbers{7, 8, 9}));
  Contained usual(2);
  usual.number(0, 1000);
  usual.number(1, 1001);
  EXPECT_EQ(usual.find(true), (Numbers{0, 0}));
}

TEST(OwnNumbers, OfOneThreadAreUsedOnlyForAForkedProcess) {
  EXPECT_EQ(Contained(1).find(true), (Numbers{7}));
  EXPECT_EQ(Contained(1).find(false), (Numbers{0}));
}

TEST(OwnNumbers, AreNotUsedIfOneOfThemDoesNotFit) {
  for (const int tid : {1001, 7, 0, -5}) {
    Contained contained(2);
    contained.number(1, tid);
    EXPECT_EQ(contained.find(true), (Numbers{0, 0})) << tid;
  }
  Contained without(2);
  without.process.put_word(kHeap + 0x1000 + 16, 5);
  EXPECT_EQ(without.find(true), (Numbers{0, 0}));
  Contained nowhere(2);
  nowhere.process.image.threads[1].fs_base = ~std::uint64_t{0} - 8;
  EXPECT_EQ(nowhere.find(true), (Numbers{0, 0}));
}

struct Fork {
  Fork() : parent(1000, 1), child(2000, 1000) {
    parent.add_thread_at(kHeap + 0x1000, 1000, {"pause", "made_main"});
    parent.add_thread_at(kHeap + 0x2000, 1001, {"pause", "made_worker"});
  }

  MadeProcess parent;
  MadeProcess child;
};

std::int32_t forking_thread(const Fork& fork) {
  return find_forking_thread(fork.child.image, find_first_pointer(fork.child.image), fork.parent.image);
}

TEST(ForkingThread, HasTheStructOfTheChildsFirstThread) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x2000, 2000, {"pause", "made_worker"});
  fork.child.add_thread_at(kHeap + 0x1000, 2001, {"pause", "made_main"});
  EXPECT_EQ(forking_thread(fork), 1001);
}

TEST(ForkingThread, IsFoundByMemoryIfTheChildWasNotStopped) {
  Fork fork;
  fork.parent.add_thread_at(test::kFoundPointer, 1002, {"pause", "made_worker"});
  fork.child.add_thread_at(test::kFoundPointer, 2000, {"pause", "made_worker"});
  fork.child.put_pthread(2000);
  fork.child.image.threads.front().fs_base = 0;
  EXPECT_EQ(forking_thread(fork), 1002);
}

TEST(ForkingThread, IsUnknownIfItHasEnded) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x2000, 2000, {"pause", "made_worker"});
  fork.parent.image.threads.pop_back();
  EXPECT_EQ(forking_thread(fork), 0);
}

TEST(ForkingThread, IsUnknownIfNoThreadOfTheParentHasTheChildsStruct) {
  Fork fork;
  fork.child.add_thread_at(kHeap + 0x9000, 2000, {"pause", "made_worker"});
  EXPECT_EQ(forking_thread(fork), 0);
  fork.child.image.threads.front().fs_base = 0;
  EXPECT_EQ(forking_thread(fork), 0);
  fork.child.image.threads.clear();
  EXPECT_EQ(forking_thread(fork), 0);
}

TEST(Layout, IsThatOfTheSameProgramAtTheSamePlaces) {
  Fork fork;
  EXPECT_TRUE(is_same_layout(fork.child.image, fork.parent.image));
  // The child has loaded a library since the fork.
  symbols::Module late;
  late.owner = files::kCaller;
  late.path = "/usr/lib/late.so";
  late.bias = 0x1000;
  fork.child.image.modules.insert(fork.child.image.modules.begin(), late);
  EXPECT_TRUE(is_same_layout(fork.child.image, fork.parent.image));
  // The "child" is another run of the same program, which the loader has put at other addresses.
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
