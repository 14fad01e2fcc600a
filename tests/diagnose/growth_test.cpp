// Tests that the time of the rules grows linearly with the number of waits and findings. Each test compares the
// processor time for a model with the time for a model that is four times as large. Linear time gives a ratio of about
// 4, and quadratic time gives a ratio of about 16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dead_process.hpp"
#include "diagnose/diagnose.hpp"
#include "files/budgets.hpp"
#include "processor_time.hpp"

namespace forksight {
namespace {

constexpr std::size_t kSize = 1000;
constexpr std::size_t kSizeOfQuickRules = 10'000;
constexpr double kMostGrowth = 8;

double time_of_rules(const model::Model& model) {
  double least = 1e9;
  for (int i = 0; i < 2; ++i) {
    const double begin = test::processor_time();
    std::vector<std::string> limits;
    diagnose(model, limits);
    EXPECT_TRUE(limits.empty()) << limits.front();
    least = std::min(least, test::processor_time() - begin);
  }
  return least;
}

void expect_linear(const std::function<model::Model(std::size_t)>& make, std::size_t size = kSize) {
  const double small = time_of_rules(make(size));
  const double large = time_of_rules(make(4 * size));
  EXPECT_LT(large / small, kMostGrowth) << small << " s and " << large << " s";
}

model::Wait stuck(std::size_t number, const std::string& top, std::vector<model::Waker> wakers) {
  model::Wait wait;
  wait.tid = static_cast<std::int32_t>(100 + number);
  wait.name = "w";
  wait.is_stuck = true;
  wait.wakers_known = true;
  wait.wakers = std::move(wakers);
  for (const std::string& function : {top, "f" + std::to_string(number)}) {
    model::Frame& frame = wait.stack.frames.emplace_back();
    frame.function = function;
    frame.module = "/opt/app";
  }
  return wait;
}

// A thread that waits for a lock that it holds itself.
model::Wait waits_for_itself(std::size_t number, model::FutexUse use) {
  const auto tid = static_cast<std::int32_t>(100 + number);
  const bool is_mutex = use == model::FutexUse::kMutex;
  model::Wait wait = stuck(number, "lock", {{100, is_mutex ? tid : 0, -1, is_mutex ? "mutex" : "rwlock"}});
  wait.kind = model::WaitKind::kFutex;
  wait.use = use;
  wait.object = 0x1000 + 64 * number;
  wait.mutex_type = is_mutex ? model::MutexType::kNormal : model::MutexType::kUnknown;
  if (is_mutex) wait.owner = tid;
  if (!is_mutex) wait.readers = 1;
  return wait;
}

model::Model process_of(std::size_t threads, const std::function<model::Wait(std::size_t)>& make) {
  std::vector<model::Wait> waits;
  for (std::size_t number = 0; number < threads; ++number) waits.push_back(make(number));
  return model_of({dead_process(100, std::move(waits))});
}

TEST(Growth, ThreadsOfOneProcessThatLockAMutexTwice) {
  expect_linear([](std::size_t size) {
    return process_of(size, [](std::size_t number) { return waits_for_itself(number, model::FutexUse::kMutex); });
  });
}

TEST(Growth, ThreadsOfOneProcessThatWaitToWriteWhatTheyRead) {
  expect_linear([](std::size_t size) {
    return process_of(size, [](std::size_t number) { return waits_for_itself(number, model::FutexUse::kRwlockWrite); });
  });
}

// Each of these threads is in a routine of pthread_once(), behind as many threads that are not.
TEST(Growth, ThreadsOfOneProcessInRoutinesOfPthreadOnce) {
  expect_linear([](std::size_t size) {
    return process_of(size, [size](std::size_t number) {
      model::Wait wait = waits_for_itself(number, model::FutexUse::kMutex);
      if (3 * number < 2 * size) return wait;
      wait.use = model::FutexUse::kUnknown;
      wait.wakers.clear();
      for (const char* const function : {"__pthread_once_slow", "inner", "__pthread_once_slow", "main"}) {
        wait.stack.frames.emplace_back().function = function;
      }
      return wait;
    });
  });
}

// Each finding about the process names the processes whose end would end a wait of the process.
TEST(Growth, FindingsAboutAProcessThatManyProcessesCouldWake) {
  const auto make = [](std::size_t size) {
    model::Model model =
        process_of(size, [](std::size_t number) { return waits_for_itself(number, model::FutexUse::kMutex); });
    model::Wait reader = stuck(size, "read", {});
    reader.kind = model::WaitKind::kPipeRead;
    for (std::size_t number = 0; number < size; ++number) {
      reader.wakers.push_back({static_cast<std::int32_t>(1'000'000 + number), 0, 3, "pipe"});
    }
    model.processes[0].waits.push_back(std::move(reader));
    return model;
  };
  expect_linear(make);
  const std::vector<Finding> findings = diagnose(make(10));
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings[0].chain.at(1).find("1000006, 1000007 and 2 more."), std::string::npos) << findings[0].chain[1];
}

// Processes that hang, each in another function.
TEST(Growth, FindingsAboutManyProcesses) {
  expect_linear([](std::size_t size) {
    std::vector<model::Process> processes;
    for (std::size_t number = 0; number < size; ++number) {
      const auto pid = static_cast<std::int32_t>(100 + number);
      model::Wait wait = waits_for_itself(number, model::FutexUse::kMutex);
      wait.wakers.front().pid = pid;
      processes.push_back(dead_process(pid, {std::move(wait)}));
    }
    return model_of(std::move(processes));
  });
}

model::CudaIpcCall cuda_call(model::CudaIpcKind kind, model::ProcessId process, std::uint64_t handle,
                             std::size_t number) {
  model::CudaIpcCall call;
  call.kind = kind;
  call.process = process;
  call.handle = handle;
  call.address = 0x1000 * (number + 1);
  call.began_ns = 10 + 2 * number;
  call.ended_ns = call.began_ns + 1;
  return call;
}

model::Model two_processes() { return model_of({dead_process(100, {}), dead_process(200, {})}); }

TEST(Growth, ContextsThatEndBesideOpenMemory) {
  expect_linear(
      [](std::size_t size) {
        model::Model model = two_processes();
        for (std::size_t i = 0; i < size; ++i) {
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kOpen, 0, i + 1, i));
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kContextGone, 1, 0, size + i));
        }
        return model;
      },
      kSizeOfQuickRules);
}

TEST(Growth, ExportsOfOneHandleThatWereFreed) {
  expect_linear(
      [](std::size_t size) {
        model::Model model = two_processes();
        for (std::size_t i = 0; i < size; ++i) {
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kExport, 0, 7, i));
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kFree, 0, 7, i));
          model.cuda_ipc.back().began_ns += 2 * size;
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kOpen, 1, 7, 2 * size + i));
        }
        return model;
      },
      kSizeOfQuickRules);
}

TEST(Growth, RefusedCallsBesideOpenMemory) {
  expect_linear(
      [](std::size_t size) {
        model::Model model = two_processes();
        for (std::size_t i = 0; i < size; ++i) {
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kOpen, 0, i + 1, i));
          model.cuda_ipc.push_back(cuda_call(model::CudaIpcKind::kOpen, 0, size + i + 1, size + i));
          model.cuda_ipc.back().result = 400;
        }
        return model;
      },
      kSizeOfQuickRules);
}

// Handlers that wait beside rings of two threads.
TEST(Growth, HandlersBesideRings) {
  expect_linear([](std::size_t size) {
    model::Model model = process_of(size, [](std::size_t number) {
      model::Wait wait = waits_for_itself(number, model::FutexUse::kMutex);
      wait.owner = wait.wakers.front().tid = static_cast<std::int32_t>(100 + (number ^ 1U));
      return wait;
    });
    model.handlers.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
      model::HandlerRun& run = model.handler_runs.emplace_back();
      run.tid = static_cast<std::int32_t>(1'000'000 + i);
      run.waits.emplace_back().object = 0x7000;
      run.holds.emplace_back().object = 0x6000;
    }
    return model;
  });
}

// A child that locks many rwlocks, all of which a lost thread held for reading.
TEST(Growth, RwlocksThatALostThreadHeldForReading) {
  expect_linear([](std::size_t size) {
    model::Model model = two_processes();
    for (const std::int32_t tid : {100, 101}) model.threads.emplace_back().tid = tid;
    model::Fork& fork = model.forks.emplace_back();
    fork.child = 1;
    fork.lost_threads = {1};
    for (std::size_t i = 0; i < size; ++i) {
      model::Lock& lock = model.locks.emplace_back();
      lock.address = 0x5000 + 64 * i;
      lock.kind = model::LockKind::kRwlockRead;
      model::Held& held = fork.held.emplace_back();
      held.lock = i;
      held.holder = 1;
      model::Touch& touch = model.touches.emplace_back();
      touch.process = 1;
      touch.tid = static_cast<std::int32_t>(200 + i);
      touch.held = i;
    }
    return model;
  });
}

// If each finding about a process listed all victims of the process, the findings would take gigabytes.
TEST(Growth, OnlyTheFirstOfManyFindingsAboutAProcessListsAllItsVictims) {
  constexpr std::size_t kFindings = 50;
  constexpr std::size_t kVictims = 1000;
  model::Model model =
      process_of(kFindings, [](std::size_t number) { return waits_for_itself(number, model::FutexUse::kMutex); });
  for (std::size_t number = 0; number < kVictims; ++number) {
    model::Process& victim = model.processes.emplace_back();
    victim.pid = static_cast<std::int32_t>(1'000'000 + number);
    victim.liveness = model::Liveness::kVictim;
    victim.waits_for = 0;
    victim.waits_via = "wait4";
  }
  std::vector<std::string> limits;
  const std::vector<Finding> findings = diagnose(model, limits);
  ASSERT_EQ(findings.size(), kFindings);
  for (const Finding& finding : findings) {
    const bool is_first = &finding == &findings.front();
    EXPECT_EQ(finding.victims.size(), is_first ? kVictims : files::kMaxListedVictims);
    EXPECT_EQ(finding.victims.size() + finding.more_victims, kVictims);
  }
}

}  // namespace
}  // namespace forksight
