#include "file_steps.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "objects.hpp"
#include "steps.hpp"

namespace truth {
namespace {

constexpr size_t kMoreThanAPipeHolds = 1 << 20;

int answer(ssize_t returned) { return returned < 0 ? errno : 0; }

int index_of(const Step& step) { return g_play->scenario.object_of(step.arguments.at(0)); }

bool is_counter(const Step& step) {
  const ObjectKind kind = g_play->scenario.objects[static_cast<size_t>(index_of(step))].kind;
  return kind == ObjectKind::kEventfd || kind == ObjectKind::kTimerfd;
}

int read_step(const Step& step) {
  char byte = 0;
  uint64_t count = 0;
  if (step.arguments.at(0) == "stdin") return answer(read(STDIN_FILENO, &byte, 1));
  if (is_counter(step)) return answer(read(read_end(index_of(step)), &count, sizeof count));
  return answer(read(read_end(index_of(step)), &byte, 1));
}

int write_step(const Step& step) {
  const uint64_t one = 1;
  if (is_counter(step)) return answer(write(read_end(index_of(step)), &one, sizeof one));
  return answer(write(write_end(index_of(step)), "x", 1));
}

int arm_step(const Step& step) {
  itimerspec far{};
  far.it_value.tv_sec = kFarSeconds;
  return answer(timerfd_settime(read_end(index_of(step)), 0, &far, nullptr));
}

int fill_step(const Step& step) {
  const std::vector<char> bytes(kMoreThanAPipeHolds, 'x');
  return answer(write(write_end(index_of(step)), bytes.data(), bytes.size()));
}

int open_step(const Step& step) {
  const bool reading = step.arguments.at(1) == "r";
  const int fd = open(path_of(step.arguments.at(0)).c_str(), reading ? O_RDONLY : O_WRONLY);
  if (fd < 0) return errno;
  place(fd, reading ? read_end(index_of(step)) : write_end(index_of(step)));
  return 0;
}

int close_step(const Step& step) {
  const bool reading = step.arguments.at(1) == "r";
  return answer(close(reading ? read_end(index_of(step)) : write_end(index_of(step))));
}

// Each process opens a file for itself when it first locks the file. Until then a child uses its parent's open file.
// All threads of a process use one open file. If two threads open the file at once, the descriptor of the second thread
// is not used. This descriptor stays open, because close() would remove the fcntl() locks of the process.
int file_of(const Step& step) {
  const std::atomic_ref<int> descriptor(object_at(g_play->scenario, index_of(step)).descriptor);
  int used = descriptor.load();
  if (used >= 0) return used;
  const std::string path = path_of(step.arguments.at(0));
  const int opened = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) fail("cannot open " + path);
  return descriptor.compare_exchange_strong(used, opened) ? opened : used;
}

int fcntl_step(const Step& step, int command, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  const int file = file_of(step);
  int returned = 0;
  do {
    returned = fcntl(file, command, &lock);
  } while (returned != 0 && errno == EINTR);
  return answer(returned);
}

// A message of one byte, with a control message that carries one descriptor or has room for one.
struct Passing {
  unsigned char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  Passing() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
  }
};

int number_of_end(const std::string& object, const std::string& end) {
  const int index = g_play->scenario.object_of(object);
  return end == "r" ? read_end(index) : write_end(index);
}

int send_step(const Step& step) {
  Passing passing;
  cmsghdr* header = CMSG_FIRSTHDR(&passing.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = number_of_end(step.arguments.at(1), step.arguments.at(2));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  passing.byte = static_cast<unsigned char>(fd);
  return answer(sendmsg(write_end(index_of(step)), &passing.message, 0));
}

// The byte of the message is the descriptor's number in the sender. The received descriptor gets the same number.
int receive_step(const Step& step) {
  Passing passing;
  const ssize_t length = recvmsg(read_end(index_of(step)), &passing.message, 0);
  if (length <= 0) return answer(length);
  const cmsghdr* header = CMSG_FIRSTHDR(&passing.message);
  if (header == nullptr) fail("no descriptor came");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  place(fd, passing.byte);
  return 0;
}

}  // namespace

bool perform_file_step(const Step& step, int* result) {
  const std::string& operation = step.operation;
  if (operation == "read") {
    *result = read_step(step);
  } else if (operation == "write") {
    *result = write_step(step);
  } else if (operation == "arm") {
    *result = arm_step(step);
  } else if (operation == "fill") {
    *result = fill_step(step);
  } else if (operation == "open") {
    *result = open_step(step);
  } else if (operation == "close") {
    *result = close_step(step);
  } else if (operation == "flock") {
    *result = answer(flock(file_of(step), LOCK_EX));
  } else if (operation == "funlock") {
    *result = answer(flock(file_of(step), LOCK_UN));
  } else if (operation == "plock") {
    *result = fcntl_step(step, F_SETLKW, F_WRLCK);
  } else if (operation == "punlock") {
    *result = fcntl_step(step, F_SETLK, F_UNLCK);
  } else if (operation == "olock") {
    *result = fcntl_step(step, F_OFD_SETLKW, F_WRLCK);
  } else if (operation == "ounlock") {
    *result = fcntl_step(step, F_OFD_SETLK, F_UNLCK);
  } else if (operation == "send") {
    *result = send_step(step);
  } else if (operation == "receive") {
    *result = receive_step(step);
  } else {
    return false;
  }
  return true;
}

}  // namespace truth
