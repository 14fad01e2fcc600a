// Objects for which system calls wait, and functions that end these waits. A test makes the objects before it forks.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <string>

namespace forksight::test {

struct BlockingObjects {
  BlockingObjects() {
    word = static_cast<std::atomic<std::uint32_t>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    messages = msgget(IPC_PRIVATE, 0600);
    file = memfd_create("lock", MFD_CLOEXEC);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &interest);
  }
  ~BlockingObjects() {
    munmap(word, 4096);
    for (const int fd : {pipe_ends[0], pipe_ends[1], sockets[0], sockets[1], file, epoll}) close(fd);
    semctl(semaphore, 0, IPC_RMID);
    msgctl(messages, IPC_RMID, nullptr);
  }
  BlockingObjects(const BlockingObjects&) = delete;
  BlockingObjects& operator=(const BlockingObjects&) = delete;

  void fill_pipe() const {
    fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, 'x');
    while (write(pipe_ends[1], page.data(), page.size()) > 0) {
    }
    fcntl(pipe_ends[1], F_SETFL, 0);
  }
  void write_byte() const { EXPECT_EQ(write(pipe_ends[1], "x", 1), 1); }
  void send_byte() const { EXPECT_EQ(write(sockets[1], "x", 1), 1); }
  void wake() const {
    *word = 1;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t>* word;
  int pipe_ends[2];
  int sockets[2];
  int semaphore;
  int messages;
  int file;
  int epoll;
};

}  // namespace forksight::test
