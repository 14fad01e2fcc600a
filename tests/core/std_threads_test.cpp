// Tests that forksight finds out which function a std::thread runs, from the memory of a child that lost this thread.
#include "inspect/std_threads.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <semaphore>
#include <thread>

#include "image/live.hpp"
#include "image/stacks.hpp"
#include "inspect/lost_pthreads.hpp"

namespace forksight::inspect {
namespace {

// A sanitizer starts threads with its own function, which hides the start function of libstdc++.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAreStartedByLibstdcxx = false;
#else
constexpr bool kAreStartedByLibstdcxx = true;
#endif

std::string unless_sanitized(const std::string& name) { return kAreStartedByLibstdcxx ? name : "not known"; }

std::counting_semaphore<> g_end{0};

[[gnu::noinline]] void wait_for_end(int, const char*) { g_end.acquire(); }
[[gnu::noinline]] void run_nothing() {}

struct Worker {
  [[gnu::noinline]] void run(int) { g_end.acquire(); }
};

struct Functor {
  int number = 0;
  void operator()() const { g_end.acquire(); }
};

// Starts a thread, and finds its function in the memory of a forked child.
class StdThreads : public testing::Test {
 protected:
  template <class... Arguments>
  std::string start_of(Arguments&&... arguments) {
    std::thread thread(std::forward<Arguments>(arguments)...);
    const auto pointer = static_cast<std::uint64_t>(thread.native_handle());
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    const auto image = image::open_live(child);
    std::string found = "no image";
    if (image) found = find(image.value(), pointer);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    g_end.release();
    thread.join();
    return found;
  }

 private:
  static std::string find(const image::Image& image, std::uint64_t pointer) {
    image::Stacks stacks(image);
    symbols::CodeSymbol start;
    for (const std::uint64_t state : {std::uint64_t{0}, std::uint64_t{8}, std::numeric_limits<std::uint64_t>::max(),
                                      std::numeric_limits<std::uint64_t>::max() - 7, pointer}) {
      EXPECT_FALSE(find_std_thread_start(image, stacks.symbols(), state, start)) << state;
    }
    for (const LostThread& thread : find_lost_pthreads(image).threads) {
      if (thread.pointer != pointer) continue;
      if (!find_std_thread_start(image, stacks.symbols(), thread.argument, start)) return "not known";
      EXPECT_EQ(start.module, image.exe);
      return start.function;
    }
    return "no such thread";
  }
};

TEST_F(StdThreads, AFunctionIsNamed) {
  EXPECT_EQ(start_of(wait_for_end, 3, "why"),
            unless_sanitized("forksight::inspect::(anonymous namespace)::wait_for_end"));
}

TEST_F(StdThreads, AMemberFunctionIsNamed) {
  Worker worker;
  EXPECT_EQ(start_of(&Worker::run, &worker, 3),
            unless_sanitized("forksight::inspect::(anonymous namespace)::Worker::run"));
}

TEST_F(StdThreads, ALambdaIsNamedByWhereItIs) {
  const std::string start = start_of([](int) { g_end.acquire(); }, 3);
  const std::size_t test = start.find("StdThreads_");
  EXPECT_EQ(test == std::string::npos ? start : start.substr(test),
            unless_sanitized("StdThreads_ALambdaIsNamedByWhereItIs_Test::TestBody()::{lambda#1}"));
}

TEST_F(StdThreads, AFunctorIsNamedByItsType) {
  EXPECT_EQ(start_of(Functor{}), unless_sanitized("forksight::inspect::(anonymous namespace)::Functor"));
}

// The memory has pointers to two functions: the function that the thread runs, and a function that is the argument. The
// memory does not show which one is which.
TEST_F(StdThreads, NoFunctionIsNamedIfTwoArePossible) {
  EXPECT_EQ(start_of(
                +[](void (*)()) { g_end.acquire(); }, run_nothing),
            "not known");
  EXPECT_EQ(start_of(std::function<void()>([] { g_end.acquire(); })), "not known");
}

}  // namespace
}  // namespace forksight::inspect
