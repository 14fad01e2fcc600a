// Three transports of the kernel: a pipe, a socket, and memory whose descriptors are sent over a socket.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "transport.hpp"

namespace forksight::bench {
namespace {

void write_all(int fd, const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    done += static_cast<std::size_t>(must(write(fd, static_cast<const char*>(data) + done, bytes - done), "write"));
  }
}

void read_all(int fd, void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const long got = must(read(fd, static_cast<char*>(data) + done, bytes - done), "read");
    if (got == 0) _exit(0);  // the other process has ended
    done += static_cast<std::size_t>(got);
  }
}

// A pipe or a socket pair. Each lane has two descriptors: [0] for reading and [1] for writing.
class Stream final : public Transport {
 public:
  explicit Stream(bool is_pipe) : is_pipe_(is_pipe) {}
  void prepare(const Shape& shape) override {
    bytes_ = shape.bytes;
    for (auto& lane : lanes_) {
      must(is_pipe_ ? pipe(lane) : socketpair(AF_UNIX, SOCK_STREAM, 0, lane), "pipe or socketpair");
    }
  }
  void join(Side side) override {
    const int out = side == Side::kFirst ? 0 : 1;
    out_ = lanes_[out][1];
    in_ = lanes_[1 - out][0];
    close(lanes_[out][0]);
    close(lanes_[1 - out][1]);
    written_.resize(bytes_);
    read_.resize(bytes_);
  }
  void* loan() override { return written_.data(); }
  void send() override { write_all(out_, written_.data(), bytes_); }
  const void* receive() override {
    read_all(in_, read_.data(), bytes_);
    return read_.data();
  }
  void release() override {}

 private:
  bool is_pipe_;
  std::size_t bytes_ = 0;
  int lanes_[2][2] = {};
  int out_ = -1, in_ = -1;
  std::vector<char> written_, read_;
};

// A pool of memfds. Each side maps each memfd once. A message is the number of a memfd and its descriptor. The receiver
// sends only the number back.
class PassedMemory final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    shape_ = shape;
    for (auto& lane : lanes_) must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, lane), "socketpair");
  }
  void join(Side side) override {
    const int out = side == Side::kFirst ? 0 : 1;
    out_ = lanes_[out][0];
    in_ = lanes_[1 - out][1];
    for (std::uint32_t i = 0; i < shape_.depth; ++i) {
      const int fd = static_cast<int>(must(memfd_create("bench", MFD_CLOEXEC), "memfd_create"));
      must(ftruncate(fd, static_cast<off_t>(shape_.bytes)), "ftruncate");
      own_.push_back({fd, map(fd)});
      free_.push_back(i);
    }
    peers_.resize(shape_.depth);
  }
  void* loan() override {
    if (free_.empty()) {
      std::uint32_t back = 0;
      read_all(out_, &back, sizeof back);
      free_.push_back(back);
    }
    loaned_ = free_.back();
    free_.pop_back();
    return own_[loaned_].at;
  }
  void send() override {
    iovec part{&loaned_, sizeof loaned_};
    Control control{};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.bytes;
    head.msg_controllen = sizeof control.bytes;
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &own_[loaned_].fd, sizeof(int));
    must(sendmsg(out_, &head, 0), "sendmsg");
  }
  const void* receive() override {
    iovec part{&held_, sizeof held_};
    Control control{};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.bytes;
    head.msg_controllen = sizeof control.bytes;
    if (must(recvmsg(in_, &head, MSG_CMSG_CLOEXEC), "recvmsg") == 0) _exit(0);
    const cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    if (rights == nullptr || held_ >= peers_.size()) fail("a message without its descriptor");
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    if (peers_[held_] == nullptr) peers_[held_] = map(fd);
    close(fd);
    return peers_[held_];
  }
  void release() override { write_all(in_, &held_, sizeof held_); }

 private:
  struct Own {
    int fd;
    void* at;
  };
  union Control {
    char bytes[CMSG_SPACE(sizeof(int))];
    cmsghdr align;
  };
  void* map(int fd) const {
    void* const at = mmap(nullptr, shape_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) fail("mmap");
    return at;
  }
  Shape shape_;
  int lanes_[2][2] = {};
  int out_ = -1, in_ = -1;
  std::vector<Own> own_;
  std::vector<void*> peers_;
  std::vector<std::uint32_t> free_;
  std::uint32_t loaned_ = 0, held_ = 0;
};

const Registered kPipe{{"pipe", [] { return std::make_unique<Stream>(true); }, true, false, false}};
const Registered kSocket{{"AF_UNIX", [] { return std::make_unique<Stream>(false); }, true, false, false}};
const Registered kPassed{{"memfd by SCM_RIGHTS", [] { return std::make_unique<PassedMemory>(); }, false, false, false}};

}  // namespace
}  // namespace forksight::bench
