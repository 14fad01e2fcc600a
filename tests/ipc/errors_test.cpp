// Tests the errors of the queue: a resource is exhausted, or an input is invalid. Almost every test compares the text
// of the error word for word. Several tests also check that a call that fails leaves no descriptor, mapping or name
// behind.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "crc32c.hpp"
#include "descriptor_passing.hpp"
#include "forksight/ipc.h"
#include "forksight/ipc/handover.hpp"
#include "injector.hpp"
#include "invariants.hpp"
#include "made_queue.hpp"
#include "recovery.hpp"
#include "sandbox.hpp"

namespace forksight::ipc {
namespace {

using namespace std::string_literals;
using test::child;
using test::holdings;
using test::make;

options small(strategy st = strategy::memfd) {
  options wanted;
  wanted.slots = wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.backing = st;
  return wanted;
}

options large(strategy st) {
  options wanted = small(st);
  wanted.buffers = 64;
  wanted.buffer_bytes = 64 * 1024;
  return wanted;
}

queue make() { return test::make(small()); }

std::string bytes_of(const options& wanted) { return std::to_string(detail::plan(wanted).value().bytes); }

// A second, writable mapping of the segment without its payload. A test uses it to write as a hostile process would.
class stolen {
 public:
  explicit stolen(const queue& of) : size_(test::words(of).size()) {
    at_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, of.fd(), 0));
    if (at_ == MAP_FAILED) std::abort();
  }
  stolen(const stolen&) = delete;
  stolen& operator=(const stolen&) = delete;
  ~stolen() { munmap(at_, size_); }
  detail::header& head() { return *reinterpret_cast<detail::header*>(at_); }
  char* at(std::uint64_t offset) { return at_ + offset; }
  void make_crc_good() { head().shape.crc = detail::crc32c(&head().shape, offsetof(detail::geometry, crc)); }

 private:
  std::size_t size_;
  char* at_ = nullptr;
};

template <class T>
void expect_error(const result<T>& got, errc code, const std::string& text) {
  ASSERT_FALSE(got.has_value()) << "instead of: " << text;
  EXPECT_STREQ(name_of(got.error().code), name_of(code));
  EXPECT_EQ(got.error().text, text);
}

// Runs `limit` and then `call` in a child. `fault` says which system call fails while `call` runs. Returns what `call`
// returns. Checks that the child leaves no name in /dev/shm.
std::string said_by(const std::function<void()>& limit, const test::fault& fault,
                    const std::function<std::string()>& call) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::string said;
  holdings before;
  const test::faulted found = test::injector::run(
      fault,
      [&] {
        (void)holdings::now();
        before = holdings::now();
        limit();
      },
      [&] { said = call(); },
      [&] {
        const rlimit enough{64, 64};
        setrlimit(RLIMIT_NOFILE, &enough);
        if (write(ends[1], said.data(), said.size()) < 0) return 1;
        return holdings::now().names == before.names ? 0 : 2;
      });
  close(ends[1]);
  char text[2048];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  EXPECT_EQ(found.status, 0);
  return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
}

template <class T>
std::string text_of(const result<T>& got) {
  return got.has_value() ? "no error"s : name_of(got.error().code) + ": "s + got.error().text;
}

// Limits the address space to what the process uses now, and one MiB more.
void limit_memory() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  const rlimit most{(pages + 256) * 4096, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &most);
}

void take_all_descriptors() {
  const rlimit sixteen{16, 64};
  setrlimit(RLIMIT_NOFILE, &sixteen);
  while (dup(0) >= 0) {
  }
}

class Errors : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::enter_mount_namespace()) GTEST_FAIL();
    ASSERT_TRUE(test::mount_memory("/dev/shm", "size=1m"));
  }
};

TEST_F(Errors, NoRoomInTheFileSystem) {
  const options wanted = large(strategy::named);
  (void)holdings::now();
  const holdings before = holdings::now();
  const auto refused = queue::create(wanted);
  EXPECT_EQ(holdings::now(), before);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_EQ(refused.error().sys_errno, ENOSPC);
  // The name is random.
  std::string text = refused.error().text;
  const std::size_t name = text.find("/forksight-");
  ASSERT_NE(name, std::string::npos);
  text.replace(name, std::strlen("/forksight-") + 32, "/NAME");
  EXPECT_EQ(text, "segment: needs " + bytes_of(wanted) +
                      " bytes, but the file system of /dev/shm/NAME has only 1048576 free of 1048576: make /dev/shm "
                      "larger (in a container by --shm-size), or use strategy::memfd, which does not need it");
  // A memfd is not limited by /dev/shm.
  EXPECT_TRUE(queue::create(large(strategy::memfd)));
}

TEST_F(Errors, NoMemory) {
  const options wanted = small();
  // In each round, the next system call of create() fails. The loop ends at the call that allocates the segment's
  // pages.
  std::string said;
  for (unsigned long at = 0; said.find("needs") == std::string::npos; ++at) {
    ASSERT_LT(at, 64u) << said;
    said = said_by([] {}, {test::fault::kind::fails, at, ENOMEM}, [&] { return text_of(queue::create(wanted)); });
  }
  EXPECT_EQ(said, "no_space: segment: needs " + bytes_of(wanted) +
                      " bytes, but the kernel cannot allocate so much memory: ask for fewer or smaller buffers");
}

TEST_F(Errors, NoAddressSpace) {
  const options wanted = large(strategy::memfd);
  const std::string said = said_by(limit_memory, {}, [&] {
    rlimit most{};
    getrlimit(RLIMIT_AS, &most);
    std::string text = text_of(queue::create(wanted));
    const std::string number = std::to_string(most.rlim_cur);
    if (const std::size_t at = text.find(number); at != std::string::npos) text.replace(at, number.size(), "N");
    return text;
  });
  EXPECT_EQ(said, "no_space: segment: mmap of " + bytes_of(wanted) +
                      " bytes: Cannot allocate memory (RLIMIT_AS is N; raise it with ulimit -v, or ask for fewer or "
                      "smaller buffers)");
}

// With feed::thread, send_copy() makes a copy of the message. Here the process has no memory for this copy.
TEST_F(Errors, InCALackOfMemoryIsNoSpace) {
  constexpr std::size_t kBytes = 8 << 20;
  forksight_queue* q = nullptr;
  std::string bytes(kBytes, 'x');
  const auto limit = [&] {
    forksight_queue_options wanted{};
    wanted.slots = wanted.buffers = 2;
    wanted.buffer_bytes = kBytes;
    wanted.thread = 1;
    if (forksight_queue_create(&wanted, &q, nullptr) != FORKSIGHT_QUEUE_OK) std::abort();
    // This starts the feeder thread, which needs memory for its stack.
    if (forksight_queue_send_copy(q, "x", 1, -1, nullptr) != FORKSIGHT_QUEUE_OK) std::abort();
    limit_memory();
  };
  EXPECT_EQ(said_by(limit, {},
                    [&] {
                      forksight_queue_error why{};
                      const int code = forksight_queue_send_copy(q, bytes.data(), bytes.size(), -1, &why);
                      return (code == FORKSIGHT_QUEUE_NO_SPACE ? "no_space: "s : "another code: "s) + why.text;
                    }),
            "no_space: queue: this process cannot allocate the memory that the call needs");
}

// If create() did not check the size, the kernel would send SIGXFSZ, which ends the process.
TEST_F(Errors, ALimitForTheSizeOfFiles) {
  const auto limit = [] {
    const rlimit most{1 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &most);
  };
  for (const strategy how : {strategy::memfd, strategy::named}) {
    const options wanted = large(how);
    EXPECT_EQ(
        said_by(limit, {}, [&] { return text_of(queue::create(wanted)); }),
        "no_space: segment: needs " + bytes_of(wanted) +
            " bytes, but this process may make files of at most 1048576 bytes (RLIMIT_FSIZE): raise it with ulimit "
            "-f, or ask for fewer or smaller buffers");
  }
}

// Makes this process appear to be in the control group "/group/leaf". The files of the group are in a folder to which
// the test can write. `line` is the line of /proc/self/cgroup. `mount` is the folder of the root group.
class fake_group {
 public:
  fake_group(const std::string& line, const std::string& mount) {
    if (!test::mount_memory("/sys/fs/cgroup", "size=1m")) return;
    std::filesystem::create_directories(mount + "/group/leaf");
    test::write_file("/sys/fs/cgroup/of", line + "\n");
    is_there_ = ::mount("/sys/fs/cgroup/of", "/proc/self/cgroup", nullptr, MS_BIND, nullptr) == 0;
  }
  fake_group(const fake_group&) = delete;
  fake_group& operator=(const fake_group&) = delete;
  ~fake_group() {
    umount("/proc/self/cgroup");
    umount("/sys/fs/cgroup");
  }
  bool is_there() const { return is_there_; }

 private:
  bool is_there_ = false;
};

TEST_F(Errors, TheControlGroupHasNoRoom) {
  const fake_group here("0::/group/leaf", "/sys/fs/cgroup");
  ASSERT_TRUE(here.is_there()) << std::strerror(errno);
  const options wanted = large(strategy::memfd);
  const auto limit = [](const std::string& folder, const std::string& most) {
    test::write_file(folder + "/memory.max", most + "\n");
    test::write_file(folder + "/memory.current", "1000000\n");
  };
  EXPECT_TRUE(queue::create(wanted));
  // Any group from the leaf up to the root may have a limit. In a cgroup namespace, the root may have one, too.
  for (const std::string folder : {"/sys/fs/cgroup/group/leaf", "/sys/fs/cgroup/group", "/sys/fs/cgroup"}) {
    limit(folder, "3000000");
    expect_error(
        queue::create(wanted), errc::cgroup_limit,
        "segment: needs " + bytes_of(wanted) + " bytes, but control group " + folder +
            " has only 2000000 left of 3000000 (memory.max): raise that limit, or ask for fewer or smaller buffers");
    limit(folder, "max");
    EXPECT_TRUE(queue::create(wanted));
    limit(folder, "9000000");
    EXPECT_TRUE(queue::create(wanted));
  }
}

// The group has used 8,000,000 of 9,000,000 bytes, but the kernel can take back 6,500,000 of them: page cache and
// caches of the kernel. Shared memory is a part of the line `file`, and cannot be taken back.
TEST_F(Errors, MemoryThatTheKernelCanTakeBackIsRoom) {
  const options wanted = large(strategy::memfd);  // about 4,200,000 bytes
  const std::string folder = "/sys/fs/cgroup/group";
  const fake_group here("0::/group/leaf", "/sys/fs/cgroup");
  ASSERT_TRUE(here.is_there()) << std::strerror(errno);
  test::write_file(folder + "/memory.max", "9000000\n");
  test::write_file(folder + "/memory.current", "8000000\n");
  test::write_file(folder + "/memory.stat",
                   "anon 500000\nfile 7000000\nshmem 1000000\ninactive_file 4000000\nactive_file 2000000\n"
                   "slab_reclaimable 500000\nslab_unreclaimable 1000\n");
  EXPECT_TRUE(queue::create(wanted));
  test::write_file(folder + "/memory.stat", "anon 500000\nfile 7000000\nshmem 6000000\ninactive_file 1000000\n");
  expect_error(
      queue::create(wanted), errc::cgroup_limit,
      "segment: needs " + bytes_of(wanted) + " bytes, but control group " + folder +
          " has only 2000000 left of 9000000 (memory.max): raise that limit, or ask for fewer or smaller buffers");
}

TEST_F(Errors, AControlGroupOfVersion1HasNoRoom) {
  const options wanted = large(strategy::memfd);
  const fake_group here("7:cpu,cpuacct:/other\n5:memory:/group/leaf\n1:name=systemd:/memory\n0::/memory",
                        "/sys/fs/cgroup/memory");
  ASSERT_TRUE(here.is_there()) << std::strerror(errno);
  const std::string group = "/sys/fs/cgroup/memory/group";
  for (const std::string& folder : {group + "/leaf", group, "/sys/fs/cgroup/memory"s}) {
    test::write_file(folder + "/memory.usage_in_bytes", "8000000\n");
    test::write_file(folder + "/memory.limit_in_bytes", "9000000\n");
    expect_error(queue::create(wanted), errc::cgroup_limit,
                 "segment: needs " + bytes_of(wanted) + " bytes, but control group " + folder +
                     " has only 1000000 left of 9000000 (memory.limit_in_bytes): raise that limit, or ask for fewer or "
                     "smaller buffers");
    // The lines that begin with total_ include the groups inside this group.
    test::write_file(folder + "/memory.stat",
                     "cache 7000000\ninactive_file 0\ntotal_inactive_file 3000000\ntotal_active_file 3000000\n");
    EXPECT_TRUE(queue::create(wanted));
    // The kernel shows this number for a group whose limit was never set.
    test::write_file(folder + "/memory.stat", "");
    test::write_file(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_TRUE(queue::create(wanted));
  }
}

TEST_F(Errors, NoDescriptorLeft) {
  EXPECT_EQ(said_by(take_all_descriptors, {}, [] { return text_of(queue::create(small())); }),
            "fd_limit: segment: memfd_create: Too many open files (RLIMIT_NOFILE is 16, all of them in use; raise it "
            "with ulimit -n)");
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const queue q = make();
  ASSERT_TRUE(send_queue(sockets[0], q));
  EXPECT_EQ(said_by(take_all_descriptors, {}, [&] { return text_of(receive_queue(sockets[1])); }),
            "fd_limit: socket " + std::to_string(sockets[1]) +
                ": its peer sent a queue, but this process can open no more descriptors: RLIMIT_NOFILE is 16, all of "
                "them in use; raise the limit with ulimit -n, and let the peer send again");
  // If too many descriptors are in flight, sendmsg() fails with ETOOMANYREFS.
  std::string said;
  for (unsigned long at = 0; said.find("splice") == std::string::npos; ++at) {
    ASSERT_LT(at, 16u) << said;
    said = said_by([] {}, {test::fault::kind::fails, at, ETOOMANYREFS},
                   [&] { return text_of(send_queue(sockets[0], q)).substr(0, 80); });
    if (said.find("sending") == std::string::npos) said.clear();
  }
  EXPECT_EQ(said.substr(0, said.find(" (")),
            "fd_limit: socket " + std::to_string(sockets[0]) + ": sending a queue: Too many references: cannot splice");
  for (const int fd : sockets) close(fd);
}

// ENFILE is the limit of the whole system. It does not help to raise the limit of the process, so the error must not
// say so.
TEST_F(Errors, NoDescriptorLeftInTheWholeSystem) {
  std::string said;
  for (unsigned long at = 0; said.find("memfd_create") == std::string::npos; ++at) {
    ASSERT_LT(at, 200u) << said;
    said = said_by([] {}, {test::fault::kind::fails, at, ENFILE}, [] { return text_of(queue::create(small())); });
  }
  EXPECT_EQ(said,
            "fd_limit: segment: memfd_create: Too many open files in system (the limit of the whole system; raise it "
            "with sysctl fs.file-max)");
}

// attach() and inspect() work on a copy of the descriptor. The error must name the caller's number, not that of the
// copy.
TEST_F(Errors, ADescriptorThatIsNoQueueIsNamedByTheCallersNumber) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string name = "descriptor " + std::to_string(ends[0]);
  expect_error(queue::attach(ends[0]), errc::untrusted, name + ": is not a regular file");
  expect_error(inspect(ends[0]), errc::untrusted, name + ": is not a regular file");
  options wanted = small();
  wanted.readonly_payload = true;
  const queue q = make(wanted);
  expect_error(queue::attach(q.fd(), role::any, ends[0]), errc::untrusted, name + ": is not a regular file");
  for (const int fd : ends) close(fd);
  expect_error(queue::attach(ends[0]), errc::not_found, name + ": is not open");
  expect_error(inspect(ends[0]), errc::not_found, name + ": is not open");
  expect_error(queue::attach(q.fd(), role::any, ends[0]), errc::not_found, name + ": is not open");
}

// Another process has sent a pipe in the place of a queue. The caller of receive_queue() does not know the number of
// that descriptor.
TEST_F(Errors, WhatIsSentInPlaceOfAQueueIsNamedByTheSocket) {
  int sockets[2], ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  ASSERT_EQ(pipe(ends), 0);
  (void)holdings::now();
  const holdings before = holdings::now();
  ASSERT_TRUE(detail::send_descriptors(sockets[0], {0x6f686b66, "queue"}, {ends, 1}, deadline::now()));
  expect_error(receive_queue(sockets[1]), errc::untrusted,
               "socket " + std::to_string(sockets[1]) + ": what was sent as a queue is not a regular file");
  EXPECT_EQ(holdings::now(), before);
  for (const int fd : {sockets[0], sockets[1], ends[0], ends[1]}) close(fd);
}

TEST_F(Errors, MoreDescriptorsThanAQueueHas) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  (void)holdings::now();
  const holdings before = holdings::now();
  struct {
    std::uint32_t magic;
    std::uint16_t major, descriptors;
  } hello{0x6f686b66, detail::kMajor, 2};
  iovec data{&hello, sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(3 * sizeof(int));
  const int three[] = {0, 1, 2};
  std::memcpy(CMSG_DATA(part), three, sizeof three);
  ASSERT_EQ(sendmsg(sockets[0], &header, 0), static_cast<ssize_t>(sizeof hello));
  expect_error(receive_queue(sockets[1]), errc::untrusted,
               "socket " + std::to_string(sockets[1]) + ": its peer sent more descriptors than a queue has");
  EXPECT_EQ(holdings::now(), before);
  for (const int fd : sockets) close(fd);
}

// gc() may lock the file of a new named queue before create() locks it. Here flock() fails, as if gc() held the lock.
// create() must then make another file.
TEST_F(Errors, GcThatLocksANewFileDoesNotMakeCreateFail) {
  int locks = 0;
  for (unsigned long at = 0; at < 200; ++at) {
    const test::faulted found = test::injector::run(
        {test::fault::kind::fails, at, EWOULDBLOCK}, [] {},
        [] {
          auto made = queue::create(small(strategy::named));
          if (!made) _exit(1);
          shm_unlink(made->name().c_str());
        },
        [] { return test::names_in("/dev/shm").empty() ? 0 : 2; });
    if (found.hit < 0) break;  // create() makes fewer calls
    if (found.hit != SYS_flock) continue;
    ++locks;
    EXPECT_EQ(found.status, 0) << "call " << at;
  }
  EXPECT_GE(locks, 2);
}

// The transfer (the message with the queue's descriptors) comes too late, without its descriptors, or only in part.
TEST_F(Errors, ATransferThatIsLateOrIncomplete) {
  const queue q = make();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const std::string socket = "socket " + std::to_string(sockets[1]);
  (void)holdings::now();
  const holdings before = holdings::now();
  expect_error(receive_queue(sockets[1], role::any, deadline::after(std::chrono::milliseconds(20))), errc::timeout,
               socket + ": its peer did not send a queue before the deadline");
  // The queue is sent after that deadline. The next call receives it completely.
  ASSERT_TRUE(send_queue(sockets[0], q));
  EXPECT_TRUE(receive_queue(sockets[1]));
  ASSERT_EQ(write(sockets[0], "fkho\5\0\1\0", 8), 8);
  expect_error(receive_queue(sockets[1]), errc::untrusted, socket + ": its peer sent a queue without its descriptors");
  // Half of a transfer comes, and then nothing more.
  ASSERT_EQ(write(sockets[0], "fkho", 4), 4);
  expect_error(receive_queue(sockets[1], role::any, deadline::after(std::chrono::milliseconds(20))), errc::timeout,
               socket + ": its peer did not send a queue before the deadline");
  EXPECT_EQ(holdings::now(), before);
  for (const int fd : sockets) close(fd);
}

TEST_F(Errors, AnotherVersionOrKindOfBuild) {
  const queue q = make();
  stolen memory(q);
  detail::geometry& shape = memory.head().shape;
  const auto expect_layout = [&](std::uint16_t major, const std::string& difference) {
    shape.major = major;
    memory.make_crc_good();
    const std::string said = "segment: its layout is " + std::to_string(major) +
                             ".0, but this program needs layout 5.0: " + difference +
                             ". Build all programs with one version of this library";
    expect_error(queue::attach(q.fd()), errc::abi_mismatch, said);
    expect_error(inspect(q.fd()), errc::abi_mismatch, said);
  };
  expect_layout(1, "layout 1 has no locks that show which members live");
  expect_layout(2,
                "layout 2 frees the slot of a message when the consumer releases the message, layout 5 when the "
                "consumer takes it");
  expect_layout(3, "layout 3 does not store the order in which waiting threads came, layout 5 does");
  expect_layout(4, "layout 4 does not count the producers and consumers that have ended, layout 5 does");
  expect_layout(6, "this version does not know that layout");
  shape.major = detail::kMajor;
  // A later minor version has given a meaning to a field that this version ignores.
  shape.minor = detail::kMinor + 1;
  memory.make_crc_good();
  expect_error(queue::attach(q.fd()), errc::abi_mismatch,
               "segment: its layout is 5.1, but this program needs layout 5.0: it may have options that this version "
               "does not know. Build all programs with one version of this library");
  shape.minor = detail::kMinor;
  for (const bool first : {true, false}) {
    shape.reserved = first ? 1 : 0;
    shape.unused = first ? 0 : 1;
    memory.make_crc_good();
    expect_error(
        queue::attach(q.fd()), errc::corrupt,
        "segment: an unused field in its header is not 0: a process has overwritten it, so create a new queue");
  }
  shape.unused = 0;
  // This is the ABI hash of a 32-bit process, whose pointers have 4 bytes.
  shape.abi = detail::abi_hash(4);
  memory.make_crc_good();
  char text[256];
  std::snprintf(text, sizeof text,
                "segment: its ABI hash is %08x, but this program has %08x: the programs differ in sizes, offsets, byte "
                "order, page size or line size. Build all programs alike",
                detail::abi_hash(4), detail::abi_hash());
  EXPECT_NE(detail::abi_hash(4), detail::abi_hash());
  expect_error(queue::attach(q.fd()), errc::abi_mismatch, text);
  shape.abi = detail::abi_hash();
  memory.make_crc_good();
  EXPECT_TRUE(queue::attach(q.fd()));
}

TEST_F(Errors, AnOverwrittenHeaderAndAnOverwrittenSlotAreCorrupt) {
  queue q = make();
  auto other = queue::attach(q.fd());
  ASSERT_TRUE(other);
  stolen memory(q);
  memory.head().shape.spin_us ^= 1;
  char text[128];
  std::snprintf(text, sizeof text,
                "segment: the CRC of its header is %08x, but the header says %08x: a process has overwritten it, so "
                "create a new queue",
                detail::crc32c(&memory.head().shape, offsetof(detail::geometry, crc)), memory.head().shape.crc);
  expect_error(queue::attach(q.fd()), errc::corrupt, text);
  // Slot 0 gets the position of slot 3.
  const std::uint64_t offset = memory.head().shape.slots_at;
  const std::uint64_t strange = detail::slot_word{3, {}, detail::slot_state::empty}.bits();
  std::memcpy(memory.at(offset), &strange, sizeof strange);
  expect_error(q.receive(deadline::now()), errc::corrupt,
               "queue: at offset " + std::to_string(offset) +
                   " is a value that no operation writes (0x3): another process has overwritten the segment; no "
                   "process can use this queue any more, so create a new one");
  expect_error(other->send_copy("x", 1, deadline::now()), errc::corrupt,
               "queue: process " + std::to_string(getpid()) + " found an invalid value at offset " +
                   std::to_string(offset) +
                   " of the segment, and no process can use this queue any more: create a new one");
}

TEST_F(Errors, AFileThatCannotBeTrusted) {
  queue q = make();
  ASSERT_EQ(fchmod(q.fd(), 0640), 0);
  expect_error(queue::attach(q.fd()), errc::untrusted,
               "segment: its mode is 640, so other users may open it: the mode must be 600");
  ASSERT_EQ(fchmod(q.fd(), 0600), 0);
  const int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  struct stat about {};
  ASSERT_EQ(fstat(q.fd(), &about), 0);
  ASSERT_EQ(fchmod(open, 0600), 0);
  ASSERT_EQ(ftruncate(open, about.st_size), 0);
  stolen memory(q);
  ASSERT_EQ(pwrite(open, memory.at(0), detail::kPage, 0), static_cast<ssize_t>(detail::kPage));
  expect_error(
      queue::attach(open), errc::untrusted,
      "segment: has the seals 0x0, but needs 0x7: without them, another process could shorten it while it is mapped");
  close(open);
  // A name that is a symbolic link is refused, even if the link leads to a queue.
  const queue named = make(small(strategy::named));
  const std::string name = "/forksight-0123456789abcdef0123456789abcdef";
  ASSERT_EQ(symlink(("/dev/shm" + named.name()).c_str(), ("/dev/shm" + name).c_str()), 0);
  expect_error(queue::attach(name), errc::untrusted, name + ": is a symbolic link");
  auto cleaned = gc();
  ASSERT_TRUE(cleaned.has_value());
  EXPECT_TRUE(cleaned->removed.empty());
  ASSERT_EQ(cleaned->skipped.size(), 1u);
  EXPECT_EQ(cleaned->skipped[0], name + ": Too many levels of symbolic links");
  // A hard link to the file of another queue is refused.
  ASSERT_EQ(unlink(("/dev/shm" + name).c_str()), 0);
  ASSERT_EQ(link(("/dev/shm" + named.name()).c_str(), ("/dev/shm" + name).c_str()), 0);
  expect_error(queue::attach(name), errc::untrusted,
               name + ": is the file of a queue that has another name, " + named.name());
}

TEST_F(Errors, AHandleThatMayNotMakeTheCall) {
  queue q = make();
  auto producer = queue::attach(q.fd(), role::producer);
  auto consumer = queue::attach(q.fd(), role::consumer);
  ASSERT_TRUE(producer);
  ASSERT_TRUE(consumer);
  expect_error(producer->receive(deadline::now()), errc::role,
               "queue: this handle has the role producer, so it cannot receive: attach another handle as a consumer");
  expect_error(consumer->acquire(deadline::now()), errc::role,
               "queue: this handle has the role consumer, so it cannot send: attach another handle as a producer");
  const std::string said = said_by([] {}, {}, [&] { return text_of(q.receive(deadline::now())); });
  EXPECT_EQ(
      said,
      "used_after_fork: queue: this handle belongs to the parent process: call reattach_after_fork() in the child, and "
      "use the handle that it returns");
  EXPECT_TRUE(producer->close_producer());
  expect_error(producer->send_copy("x", 1), errc::closed,
               "queue: close_producer() was called on this handle, so it cannot send any more: attach again");
  // The test recovers its own handle, as another participant would if it took this handle's process for dead. The
  // handle loses its entry and its loan.
  auto lent = q.acquire(deadline::now());
  ASSERT_TRUE(lent);
  auto again = detail::segment::open(detail::descriptor(dup(q.fd())));
  ASSERT_TRUE(again);
  const detail::identity who = detail::identity::of(again->view().participants[0].word.load());
  detail::recovered what;
  ASSERT_TRUE(detail::recovery::recover(again->view(), 0, who, 0, what));
  EXPECT_EQ(what.buffers, 1u);
  const std::string evicted = "queue: another participant took process " + std::to_string(getpid()) +
                              " for dead, and removed this handle from the queue. The loans and messages of this "
                              "handle went back to the queue, and no data is damaged: attach again";
  expect_error(q.send(std::move(*lent), 1, deadline::now()), errc::evicted, evicted);
  // A loan or a message that the handle took now would be lost if its process died. So these calls must fail.
  auto other = queue::attach(q.fd());
  ASSERT_TRUE(other->send_copy("x", 1, deadline::now()));
  expect_error(q.acquire(deadline::now()), errc::evicted, evicted);
  expect_error(q.receive(deadline::now()), errc::evicted, evicted);
  expect_error(q.message_fd(), errc::evicted, evicted);
  EXPECT_TRUE(other->receive(deadline::now()));
  expect_error(q.receive_parked(), errc::evicted, evicted);
  expect_error(q.requeue(), errc::evicted, evicted);
  q.shutdown(false);
  expect_error(consumer->receive(deadline::now()), errc::closed, "queue: was shut down");
}

// A caretaker withdraws a parked message and is then taken for dead. The caretaker no longer owns that message. So the
// caretaker cannot release, park or requeue the message.
TEST_F(Errors, ACaretakerThatIsTakenForDeadLosesItsMessage) {
  for (int call = 0; call < 4; ++call) {
    queue q = make();
    ASSERT_TRUE(q.send_copy("x", 1));
    auto consumer = queue::attach(q.fd(), role::consumer);
    ASSERT_TRUE(consumer);
    ASSERT_TRUE(consumer->receive()->park());
    auto keeper = queue::attach(q.fd(), role::caretaker);
    ASSERT_TRUE(keeper);
    auto held = keeper->receive_parked();
    ASSERT_TRUE(held);
    auto again = detail::segment::open(detail::descriptor(dup(q.fd())));
    ASSERT_TRUE(again);
    const detail::identity who = detail::identity::of(again->view().participants[2].word.load());
    detail::recovered what;
    ASSERT_TRUE(detail::recovery::recover(again->view(), 2, who, 0, what));
    EXPECT_EQ(q.inspect().parked, 1u);
    result<void> done;
    switch (call) {
      case 0: done = held->release(); break;
      case 1: done = held->park(); break;
      case 2: done = held->requeue(); break;
      default: *held = message(); break;
    }
    EXPECT_EQ(done.has_value(), call == 3);
    if (!done) {
      EXPECT_EQ(done.error().code, errc::evicted);
    }
    EXPECT_FALSE(*held) << call << ": the buffer belongs to others, and the object must not lead to it";
    EXPECT_EQ(held->data(), nullptr) << call;
    EXPECT_EQ(held->size(), 0u) << call;
    EXPECT_EQ(q.inspect().parked, 1u) << call;
  }
}

TEST_F(Errors, AMessageOfACorruptQueueIsEmptyAfterwards) {
  for (const bool parks : {true, false}) {
    queue q = make();
    ASSERT_TRUE(q.send_copy("x", 1));
    ASSERT_TRUE(q.receive()->park());
    auto held = q.receive_parked();
    ASSERT_TRUE(held);
    auto again = detail::segment::open(detail::descriptor(dup(q.fd())));
    ASSERT_TRUE(again);
    again->view().head->poisoned.store_relaxed(1);
    const result<void> done = parks ? held->park() : held->requeue();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, errc::corrupt);
    EXPECT_FALSE(*held) << parks;
    EXPECT_EQ(held->data(), nullptr) << parks;
  }
}

TEST_F(Errors, CRemovesQueuesThatNobodyUses) {
  auto used = queue::create(small(strategy::named));
  ASSERT_TRUE(used) << used.error().text;
  // The process that made this queue ends, and the name stays.
  const std::string left = "/forksight-left";
  test::child maker([] { return queue::open_or_create("left", small()) ? 0 : 1; });
  ASSERT_EQ(maker.wait(), 0);
  ASSERT_EQ(access(("/dev/shm" + left).c_str(), F_OK), 0);
  size_t count = 0;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_gc(1, &count, &why), FORKSIGHT_QUEUE_OK) << why.text;
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(access(("/dev/shm" + left).c_str(), F_OK), 0) << "a dry run removes nothing";
  ASSERT_EQ(forksight_queue_gc(0, &count, &why), FORKSIGHT_QUEUE_OK) << why.text;
  EXPECT_EQ(count, 1u);
  EXPECT_NE(access(("/dev/shm" + left).c_str(), F_OK), 0);
  EXPECT_EQ(access(("/dev/shm" + used->name()).c_str(), F_OK), 0);
  ASSERT_EQ(forksight_queue_gc(0, nullptr, nullptr), FORKSIGHT_QUEUE_OK);
}

TEST_F(Errors, ACFunctionNamesTheArgumentThatIsNull) {
  forksight_queue* q = nullptr;
  forksight_queue* other = nullptr;
  forksight_loan* loan = nullptr;
  forksight_message* got = nullptr;
  int fd = -1;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_create(nullptr, &q, &why), FORKSIGHT_QUEUE_OK) << why.text;
  const auto refuses = [&](const char* name, int code) {
    EXPECT_EQ(code, FORKSIGHT_QUEUE_BAD_OPTION);
    EXPECT_STREQ(why.text, (std::string(name) + " is NULL").c_str());
  };
  refuses("queue", forksight_queue_create(nullptr, nullptr, &why));
  refuses("name", forksight_queue_open_or_create(nullptr, nullptr, FORKSIGHT_QUEUE_ANY, &other, &why));
  refuses("queue", forksight_queue_open_or_create("x", nullptr, FORKSIGHT_QUEUE_ANY, nullptr, &why));
  refuses("queue", forksight_queue_take_role(nullptr, FORKSIGHT_QUEUE_PRODUCER, &why));
  refuses("queue", forksight_queue_attach(0, FORKSIGHT_QUEUE_ANY, nullptr, &why));
  refuses("name", forksight_queue_attach_named(nullptr, FORKSIGHT_QUEUE_ANY, &other, &why));
  refuses("queue", forksight_queue_attach_named("x", FORKSIGHT_QUEUE_ANY, nullptr, &why));
  refuses("parents", forksight_queue_reattach_after_fork(nullptr, &other, &why));
  refuses("queue", forksight_queue_reattach_after_fork(q, nullptr, &why));
  refuses("queue", forksight_queue_acquire(nullptr, 0, &loan, &why));
  refuses("loan", forksight_queue_acquire(q, 0, nullptr, &why));
  refuses("loan", forksight_queue_send(q, nullptr, 0, 0, &why));
  refuses("queue", forksight_queue_send_copy(nullptr, "x", 1, 0, &why));
  refuses("data", forksight_queue_send_copy(q, nullptr, 1, 0, &why));
  refuses("queue", forksight_queue_receive(nullptr, 0, &got, &why));
  refuses("message", forksight_queue_receive(q, 0, nullptr, &why));
  refuses("queue", forksight_queue_message_fd(nullptr, &fd, &why));
  refuses("fd", forksight_queue_message_fd(q, nullptr, &why));
  refuses("queue", forksight_queue_room_fd(nullptr, &fd, &why));
  refuses("fd", forksight_queue_room_fd(q, nullptr, &why));
  refuses("queue", forksight_queue_receive_parked(nullptr, &got, &why));
  refuses("message", forksight_queue_receive_parked(q, nullptr, &why));
  refuses("queue", forksight_queue_requeue(nullptr, nullptr, &why));
  refuses("message", forksight_message_park(nullptr, &why));
  refuses("message", forksight_message_requeue(nullptr, &why));
  refuses("queue", forksight_queue_flush(nullptr, 0, nullptr, &why));
  refuses("queue", forksight_queue_close_producer(nullptr, 0, nullptr, &why));
  refuses("queue", forksight_queue_send_to(0, nullptr, 0, &why));
  refuses("queue", forksight_queue_receive_from(0, FORKSIGHT_QUEUE_ANY, 0, nullptr, &why));
  EXPECT_EQ(forksight_queue_requeue(nullptr, nullptr, nullptr), FORKSIGHT_QUEUE_BAD_OPTION);
  EXPECT_EQ(other, nullptr);
  // None of the refused calls has made the handle a producer or taken a buffer.
  EXPECT_EQ(forksight_queue_send_copy(q, nullptr, 0, 0, &why), FORKSIGHT_QUEUE_OK) << why.text;
  forksight_queue_close(q);
}

TEST_F(Errors, ACFunctionWithoutAnErrorDoesNothingWithNull) {
  EXPECT_EQ(forksight_queue_fd(nullptr), -1);
  EXPECT_EQ(forksight_queue_payload_fd(nullptr), -1);
  EXPECT_EQ(forksight_queue_name(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(forksight_queue_buffer_bytes(nullptr), 0u);
  EXPECT_EQ(forksight_loan_data(nullptr), nullptr);
  EXPECT_EQ(forksight_loan_capacity(nullptr), 0u);
  EXPECT_EQ(forksight_message_data(nullptr), nullptr);
  EXPECT_EQ(forksight_message_size(nullptr), 0u);
  EXPECT_EQ(forksight_message_producer(nullptr), 0u);
  EXPECT_EQ(forksight_message_deliveries(nullptr), 0u);
  EXPECT_EQ(forksight_message_number(nullptr), 0u);
  EXPECT_EQ(forksight_queue_recover(nullptr), 0u);
  forksight_queue_cancel(nullptr);
  forksight_queue_shutdown(nullptr, 0);
  forksight_queue_close(nullptr);
  forksight_loan_give_back(nullptr);
  forksight_message_release(nullptr);
}

}  // namespace
}  // namespace forksight::ipc
