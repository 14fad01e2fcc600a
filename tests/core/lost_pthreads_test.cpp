#include "inspect/lost_pthreads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <semaphore>
#include <thread>

#include "image/live.hpp"
#include "image/stacks.hpp"

namespace forksight::inspect {
namespace {

// A child process that pauses, or that executes sleep(1). The destructor kills it.
class Child {
 public:
  enum class Kind { kFork, kBareFork, kSystemCall, kThread, kExec };

  explicit Child(Kind kind = Kind::kFork) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    switch (kind) {
      case Kind::kBareFork: pid_ = ::_Fork(); break;
      case Kind::kSystemCall: pid_ = static_cast<pid_t>(::syscall(SYS_fork)); break;
      default: pid_ = ::fork();
    }
    if (pid_ == 0) {
      if (kind == Kind::kExec) ::execl("/bin/sleep", "sleep", "1000", nullptr);
      if (kind == Kind::kThread) {
        std::thread([] {}).join();
        std::thread([&] {
          ::close(ends[1]);
          for (;;) ::pause();
        }).join();
      }
      ::close(ends[0]);
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // the child or its exec has closed the child's end of the pipe
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  image::Image look() const {
    auto image = image::open_live(pid_);
    EXPECT_TRUE(image) << image.error();
    return std::move(image).value();
  }

 private:
  pid_t pid_ = 0;
};

std::optional<bool> ask(const image::Image& image) {
  image::Stacks stacks(image);
  const auto forks = count_forks(image, stacks.symbols());
  return forks ? std::optional(*forks > 0) : std::nullopt;
}

TEST(WasForked, IsCountedByLibc) {
  const Child child;
  EXPECT_EQ(ask(child.look()), true);
  const Child other(Child::Kind::kExec);
  auto answer = ask(other.look());
  while (!answer) answer = ask(other.look());  // until libc is loaded; the time limit of the test ends this loop
  EXPECT_EQ(answer, false);
}

TEST(LostPthreads, AreInTheChildsMemory) {
  std::binary_semaphore end{0};
  std::thread other([&] { end.acquire(); });
  const auto pointer = static_cast<std::uint64_t>(other.native_handle());
  {
    const Child child;
    const LostPthreads lost = find_lost_pthreads(child.look());
    const auto found = std::ranges::find(lost.threads, pointer, &LostThread::pointer);
    ASSERT_NE(found, lost.threads.end());
    EXPECT_EQ(found->tid, 0);
    EXPECT_NE(found->start_routine, 0U);
    EXPECT_TRUE(lost.first_forked);
    EXPECT_FALSE(lost.bypassed);
    EXPECT_EQ(lost.threads.size(), 1U);
  }
  end.release();
  other.join();
}

// _Fork() does not change the structs of lost threads. So these structs keep the thread ids, although the threads do
// not exist in the child.
TEST(LostPthreads, KeepTheirTidsAfterABareFork) {
  std::binary_semaphore end{0};
  std::atomic<pid_t> tid{0};
  std::thread other([&] {
    tid = ::gettid();
    tid.notify_one();
    end.acquire();
  });
  tid.wait(0);
  const auto pointer = static_cast<std::uint64_t>(other.native_handle());
  {
    const Child child(Child::Kind::kBareFork);
    const LostPthreads lost = find_lost_pthreads(child.look());
    EXPECT_TRUE(lost.bypassed);
    ASSERT_EQ(lost.threads.size(), 1U);
    EXPECT_EQ(lost.threads.front().pointer, pointer);
    EXPECT_EQ(lost.threads.front().tid, tid);
    EXPECT_NE(lost.threads.front().start_routine, 0U);
  }
  {
    // After the bare system call, the struct of the child's thread has the parent's tid, as after vfork(). So the
    // struct does not show whether this was a fork that bypassed libc.
    const Child child(Child::Kind::kSystemCall);
    EXPECT_FALSE(find_lost_pthreads(child.look()).bypassed);
  }
  end.release();
  other.join();
}

TEST(LostPthreads, DoNotIncludeLiveThreads) {
  const Child child(Child::Kind::kThread);
  const image::Image image = child.look();
  EXPECT_EQ(image.threads.size(), 2U);
  const LostPthreads lost = find_lost_pthreads(image);
  EXPECT_TRUE(lost.threads.empty());
  EXPECT_FALSE(lost.bypassed);
}

TEST(LostPthreads, DoNotIncludeEndedThreads) {
  std::thread([] {}).join();
  const Child child;
  const LostPthreads lost = find_lost_pthreads(child.look());
  EXPECT_TRUE(lost.threads.empty());
  EXPECT_FALSE(lost.is_complete);
}

TEST(LostPthreads, IncludeTheFirstThreadIfAnotherThreadForked) {
  LostPthreads lost;
  std::thread([&] {
    const Child child;
    lost = find_lost_pthreads(child.look());
  }).join();
  EXPECT_FALSE(lost.first_forked);
  ASSERT_EQ(lost.threads.size(), 1U);
  EXPECT_EQ(lost.threads.front().tid, ::getpid());
  EXPECT_EQ(lost.threads.front().start_routine, 0U);
}

}  // namespace
}  // namespace forksight::inspect
