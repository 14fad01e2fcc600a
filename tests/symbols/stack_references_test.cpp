// Tests which frame of a stack refers to a lock. Threads of this test call functions that know a lock, and then block.
// The test reads their stacks as if the threads no longer existed. So the registers of the threads are not known.
#include "symbols/stack_references.hpp"

#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <vector>

namespace reference_test {

// Before a thread blocks, it writes to the pipe `told`. It blocks in a read of the pipe `end`.
struct Job {
  int told[2] = {};
  int end[2] = {};
  int lock = 0;
  int other = 0;
};

[[gnu::noinline]] void mutex_lock(int* lock) { *static_cast<volatile int*>(lock) = 1; }
[[gnu::noinline]] void mutex_unlock(int* lock) { *static_cast<volatile int*>(lock) = 0; }

[[gnu::noinline]] void block(Job& job) {
  char byte = 0;
  if (write(job.told[1], &byte, 1) != 1 || read(job.end[0], &byte, 1) != 0) abort();
}

// Keeps the address of the lock in a variable while it is blocked.
[[gnu::noinline]] void holds(Job& job) {
  int* volatile lock = &job.lock;
  mutex_lock(lock);
  block(job);
  mutex_unlock(lock);
}

// Has the address in a variable, but calls no function of locks.
[[gnu::noinline]] void only_knows(Job& job) {
  int* volatile lock = &job.lock;
  block(job);
  *lock = 0;
}

[[gnu::noinline]] void holds_other(Job& job) {
  int* volatile lock = &job.other;
  mutex_lock(lock);
  block(job);
  mutex_unlock(lock);
}

// Leaves the address deep below its frame. Its callers block with smaller frames.
[[gnu::noinline]] void uses_deep(Job& job) {
  int* volatile copies[512];
  for (auto& copy : copies) copy = &job.lock;
  mutex_lock(copies[0]);
  mutex_unlock(copies[511]);
}
[[gnu::noinline]] void has_used(Job& job) {
  uses_deep(job);
  block(job);
  mutex_unlock(&job.other);
}

// The function that refers to the lock is not the innermost one.
[[gnu::noinline]] void works(Job& job) {
  block(job);
  mutex_unlock(&job.other);
}
[[gnu::noinline]] void holds_while_working(Job& job) {
  int* volatile lock = &job.lock;
  mutex_lock(lock);
  works(job);
  mutex_unlock(lock);
}

}  // namespace reference_test

namespace forksight::symbols {
namespace {

using reference_test::Job;

std::vector<Module> own_modules() {
  std::vector<Module> modules;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        Module module;
        module.path = info->dlpi_name;
        if (module.path.empty()) {
          std::array<char, PATH_MAX> path{};
          if (readlink("/proc/self/exe", path.data(), path.size() - 1) > 0) module.path = path.data();
        }
        if (module.path.find('/') == std::string::npos) return 0;  // the vDSO
        module.bias = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const std::uint64_t start = info->dlpi_addr + segment.p_vaddr;
          if (module.start == 0) module.start = start;
          module.end = start + segment.p_memsz;
        }
        static_cast<std::vector<Module>*>(data)->push_back(std::move(module));
        return 0;
      },
      &modules);
  return modules;
}

template <void (*function)(Job&)>
void* run(void* job) {
  function(*static_cast<Job*>(job));
  return nullptr;
}

// The reference to Job::lock on the stack of a thread that runs `function`.
template <void (*function)(Job&)>
std::optional<StackReference> find_in_thread() {
  constexpr std::size_t kStackBytes = 128U << 10U;
  std::vector<std::byte> stack(kStackBytes + 4096);
  std::byte* const aligned = stack.data() + (4096 - reinterpret_cast<std::uintptr_t>(stack.data()) % 4096) % 4096;
  Job job;
  char byte = 0;
  pthread_attr_t attributes;
  pthread_t thread{};
  EXPECT_EQ(pipe(job.told) + pipe(job.end), 0);
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, aligned, kStackBytes), 0);
  EXPECT_EQ(pthread_create(&thread, &attributes, run<function>, &job), 0);
  EXPECT_EQ(read(job.told[0], &byte, 1), 1);
  // The struct pthread is at the end of the stack. What lies above it belongs to no function.
  const auto start = reinterpret_cast<std::uint64_t>(aligned);
  std::vector<std::byte> copy(static_cast<std::uint64_t>(thread) - start);
  // memcpy() may not read the gaps that AddressSanitizer leaves around variables.
  const iovec to{copy.data(), copy.size()};
  const iovec from{aligned, copy.size()};
  EXPECT_EQ(process_vm_readv(getpid(), &to, 1, &from, 1, 0), static_cast<ssize_t>(copy.size()));
  Symbolizer symbolizer(own_modules());
  auto found = symbolizer.find_frozen_reference({start, copy, nullptr}, reinterpret_cast<std::uint64_t>(&job.lock));
  close(job.end[1]);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  for (const int end : {job.told[0], job.told[1], job.end[0]}) close(end);
  return found;
}

TEST(StackReferences, FindsTheFunctionThatHoldsTheLock) {
  const auto found = find_in_thread<reference_test::holds>();
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->stack.frames.empty());
  EXPECT_EQ(found->stack.frames.front().function, "reference_test::holds");
  EXPECT_EQ(found->stack.frames.back().function, "clone3");
}

TEST(StackReferences, FindsAFunctionThatIsNotTheInnermostOne) {
  const auto found = find_in_thread<reference_test::holds_while_working>();
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->stack.frames.empty());
  EXPECT_EQ(found->stack.frames.front().function, "reference_test::holds_while_working");
  bool has_inner = false;
  for (const model::Frame& frame : found->inner.frames) has_inner |= frame.function == "reference_test::works";
  EXPECT_TRUE(has_inner);
}

TEST(StackReferences, LeavesOutAFunctionThatCallsNoFunctionOfLocks) {
  EXPECT_FALSE(find_in_thread<reference_test::only_knows>());
}

TEST(StackReferences, LeavesOutTheHolderOfAnotherLock) { EXPECT_FALSE(find_in_thread<reference_test::holds_other>()); }

TEST(StackReferences, LeavesOutWhatFunctionsLeftThatHaveReturned) {
  EXPECT_FALSE(find_in_thread<reference_test::has_used>());
}

TEST(StackReferences, KnowsTheNamesOfFunctionsOfLocks) {
  for (const char* const name :
       {"pthread_mutex_lock", "absl::debian3::Mutex::Unlock", "absl::debian3::MutexLock::~MutexLock",
        "std::sys::sync::rwlock::futex::RwLock::wake_writer_or_readers",
        "parking_lot::raw_mutex::RawMutex::unlock_slow", "core::ptr::drop_in_place<std::sync::mutex::MutexGuard<i32>>",
        "app::Guard::~Guard", "lock"}) {
    EXPECT_TRUE(mentions_lock(name)) << name;
  }
  for (const char* const name : {"clock_gettime", "tokio::task::block_on", "app::flush", "Block::unblock", ""}) {
    EXPECT_FALSE(mentions_lock(name)) << name;
  }
}

// A thread whose last call was clock_nanosleep() does not wait for a lock.
TEST(StackReferences, KnowsTheNamesOfFunctionsThatTakeLocks) {
  for (const char* const name :
       {"pthread_mutex_lock", "absl::Mutex::Lock", "RwLock::read_contended", "std::lock_guard"}) {
    EXPECT_TRUE(mentions_taking_lock(name)) << name;
  }
  for (const char* const name :
       {"clock_nanosleep", "clock_gettime", "tokio::task::block_on", "pthread_mutex_unlock",
        "absl::MutexLock::~MutexLock", "core::ptr::drop_in_place<MutexGuard>", "RwLock::wake_writer_or_readers", ""}) {
    EXPECT_FALSE(mentions_taking_lock(name)) << name;
  }
}

}  // namespace
}  // namespace forksight::symbols
