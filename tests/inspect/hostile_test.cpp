// The memory of a malicious process may contain anything, and may change while the analyzer reads it. The analyzer must
// nevertheless build a model in bounded time.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "diagnose/diagnose.hpp"
#include "inspect/build_model.hpp"
#include "made_process.hpp"
#include "support/scenes.hpp"

namespace forksight::inspect {
namespace {

using test::address_of;
using test::kChild;
using test::kHeap;
using test::kParent;
using test::MadeProcess;
using test::Names;

constexpr int kRounds = 300;

// Memory that has other contents at each read. A read may be short.
class NoiseMemory final : public image::Memory {
 public:
  explicit NoiseMemory(std::uint32_t seed) : random_(seed) {}

  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override {
    const std::size_t got = random_() % 8 == 0 ? random_() % (bytes.size() + 1) : bytes.size();
    for (std::size_t i = 0; i < got; ++i) bytes[i] = std::byte(random_() & 0xffU);
    // Some words are valid pointers: to their own address, or into the heap.
    for (std::size_t at = 0; at + 8 <= got && random_() % 2 == 0; at += 8) {
      const std::uint64_t word = random_() % 2 == 0 ? address + at : kHeap + random_() % 0x1000;
      std::memcpy(&bytes[at], &word, sizeof word);
    }
    return got;
  }

 private:
  mutable std::minstd_rand random_;
};

const Names kStacks[] = {
    {"pthread_mutex_lock", "made_main"},
    {"pthread_rwlock_rdlock", "made_main"},
    {"sem_wait", "made_main"},
    {"pthread_cond_destroy", "made_main"},
    {"pthread_barrier_wait", "made_main"},
    {"syscall", "__cxa_guard_acquire", "made_main"},
    {"localtime_r", "made_main"},
    {"pthread_mutex_lock", "made_handler", "fork", "made_main"},
    {"GOMP_parallel", "made_main"},
    {"puts", "made_main"},
};

MadeProcess any_process(std::minstd_rand& random, std::int32_t pid, std::int32_t ppid) {
  const std::uint64_t words[] = {0,
                                 1,
                                 kHeap,
                                 kHeap + 0x104,
                                 ~std::uint64_t{0},
                                 ~std::uint64_t{0} - 7,
                                 std::uint64_t{1} << 63U,
                                 address_of("made_mutex"),
                                 address_of("_IO_stdfile_1_lock")};
  MadeProcess process(pid, ppid);
  const std::size_t threads = random() % 5;
  for (std::size_t i = 0; i < threads; ++i) {
    const auto tid = static_cast<std::int32_t>(static_cast<std::size_t>(pid) + i);
    image::Thread& thread =
        process.add_thread(tid, kStacks[random() % std::size(kStacks)], words[random() % std::size(words)]);
    if (random() % 4 == 0) thread.fs_base = words[random() % std::size(words)];
    if (random() % 8 == 0) thread.registers.reset();
    if (random() % 8 == 0) thread.call.reset();
    if (random() % 8 == 0) thread.has_ended = true;
    if (thread.registers && random() % 8 == 0) thread.registers->set(symbols::kRsp, words[random() % std::size(words)]);
    if (thread.registers && random() % 8 == 0) thread.registers->set(symbols::kReturnAddress, random());
  }
  return process;
}

void expect_sound(const model::Model& model) {
  for (const model::Touch& touch : model.touches) {
    ASSERT_LT(touch.process, model.processes.size());
    ASSERT_LT(touch.fork, model.forks.size());
    const model::Fork& fork = model.forks[touch.fork];
    ASSERT_TRUE(!touch.held || *touch.held < fork.held.size());
    ASSERT_TRUE(!touch.in_flight || *touch.in_flight < fork.calls.size());
    ASSERT_TRUE(!touch.pool || *touch.pool < model.pools.size());
  }
  for (const model::Fork& fork : model.forks) {
    ASSERT_LT(fork.forking_thread, model.threads.size());
    for (const model::Held& held : fork.held) {
      ASSERT_LT(held.lock, model.locks.size());
      ASSERT_LT(held.holder, model.threads.size());
    }
  }
  static_cast<void>(diagnose(model));
}

TEST(Hostile, RandomMemoryYieldsASoundModel) {
  std::minstd_rand random(4711);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    MadeProcess parent = any_process(random, kParent, 1);
    MadeProcess child = any_process(random, kChild, kParent);
    if (random() % 3 != 0) parent.image.memory = std::make_shared<NoiseMemory>(random());
    if (random() % 3 != 0) child.image.memory = std::make_shared<NoiseMemory>(random());
    expect_sound(build_model(test::family(parent, child)));
    if (HasFatalFailure()) return;
  }
}

// Three words of a valid scene are changed: one in the mutex, one in the stack, and one in the struct of the thread.
TEST(Hostile, MemoryWithThreeWrongWordsYieldsASoundModel) {
  std::minstd_rand random(815);
  const std::uint64_t mutex = address_of("made_mutex");
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    MadeProcess parent(kParent, 1);
    MadeProcess child(kChild, kParent);
    parent.add_thread(kParent, {"wait4", "made_main"});
    parent.add_thread(kParent + 1, {"pause", "made_worker"});
    const Names& stack = kStacks[random() % std::size(kStacks)];
    const image::Thread thread = child.add_thread(kChild, stack, mutex);
    child.put(mutex, test::mutex_memory(0, kParent + 1));
    const std::uint64_t places[] = {mutex + random() % 48, *(*thread.registers)[symbols::kRsp] + random() % 24,
                                    thread.fs_base + 0x2d0 + random() % 4};
    for (const std::uint64_t place : places) child.put_word(place, static_cast<std::uint32_t>(random()));
    expect_sound(build_model(test::family(parent, child)));
    if (HasFatalFailure()) return;
  }
}

TEST(Hostile, ManyProcessesWithoutParentsAreListed) {
  std::vector<Subject> subjects(2000);
  MadeProcess process(kParent, 1);
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].image.pid = static_cast<std::int32_t>(i + 1);
    subjects[i].image.memory = process.image.memory;
    subjects[i].liveness = model::Liveness::kAwake;
  }
  const model::Model model = build_model(subjects);
  EXPECT_EQ(model.processes.size(), subjects.size());
  EXPECT_TRUE(diagnose(model).empty());
}

}  // namespace
}  // namespace forksight::inspect
