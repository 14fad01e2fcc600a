// Parses texts and messages of the kernel about file locks, sockets, epoll instances and mappings.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "proc/descriptors.hpp"
#include "proc/file_locks.hpp"
#include "proc/mappings.hpp"
#include "proc/sockets.hpp"

namespace forksight::proc {
namespace {

TEST(FileLocks, AreReadWithTheirWaiters) {
  const auto locks = parse_file_locks(
      "1: OFDLCK ADVISORY  WRITE -1 fe:00:10953077 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 402 fe:00:10953067 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 447 fe:00:10953067 0 EOF\n"
      "2:  -> -> POSIX  ADVISORY  READ 448 00:2a:7 10 19\n"
      "nonsense\n"
      "3: POSIX  ADVISORY  READ x fe:00:1 0 EOF\n");
  ASSERT_EQ(locks.size(), 4U);
  EXPECT_EQ(locks[0].pid, -1);
  EXPECT_EQ(locks[0].family, LockFamily::kPosix);
  EXPECT_TRUE(locks[0].is_of_file);
  EXPECT_EQ(locks[1].inode, 10953067U);
  EXPECT_EQ(locks[1].major, 0xfeU);
  EXPECT_FALSE(locks[1].waits);
  EXPECT_TRUE(locks[2].waits);
  EXPECT_TRUE(locks[3].waits);
  EXPECT_FALSE(locks[3].writes);
  EXPECT_EQ(locks[3].end, 19U);
  EXPECT_EQ(parse_held_locks("pos:\t0\nlock:\t1: FLOCK  ADVISORY  WRITE 402 fe:00:10953067 0 EOF\n").size(), 1U);
}

TEST(FileLocks, OnlyALockThatExcludesTheRequestConflicts) {
  const FileLock held = parse_file_lock("1: POSIX  ADVISORY  READ 402 fe:00:7 10 19").value();
  LockRequest request{LockFamily::kPosix, true, 0xfe, 0, 7, 19, 30};
  EXPECT_TRUE(conflicts_with(held, request));
  request.start = 20;
  EXPECT_FALSE(conflicts_with(held, request));
  request.start = 0;
  request.writes = false;
  EXPECT_FALSE(conflicts_with(held, request));
  request.writes = true;
  request.family = LockFamily::kFlock;
  EXPECT_FALSE(conflicts_with(held, request));
  request.family = LockFamily::kPosix;
  request.inode = 8;
  EXPECT_FALSE(conflicts_with(held, request));
}

std::vector<std::byte> unix_answer(std::uint32_t inode, std::uint8_t state, std::uint32_t peer) {
  struct {
    nlmsghdr header;
    unix_diag_msg message;
    rtattr name;
    std::uint32_t padding;
    rtattr attribute;
    std::uint32_t peer;
  } answer{};
  answer.header.nlmsg_len = sizeof answer;
  answer.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  answer.message.udiag_ino = inode;
  answer.message.udiag_state = state;
  answer.name = {8, UNIX_DIAG_NAME};
  answer.attribute = {8, UNIX_DIAG_PEER};
  answer.peer = peer;
  std::vector<std::byte> bytes(sizeof answer);
  std::memcpy(bytes.data(), &answer, sizeof answer);
  return bytes;
}

TEST(Sockets, TheKernelNamesThePeerOfAUnixSocket) {
  constexpr std::uint8_t kEstablished = 1;
  constexpr std::uint8_t kListen = 10;
  EXPECT_EQ(parse_unix_peer(unix_answer(7, kEstablished, 8), 7), 8U);
  EXPECT_FALSE(parse_unix_peer(unix_answer(7, kEstablished, 8), 9));
  EXPECT_FALSE(parse_unix_peer(unix_answer(7, kListen, 8), 7));
  EXPECT_FALSE(parse_unix_peer(unix_answer(7, kEstablished, 0), 7));
  const auto whole = unix_answer(7, kEstablished, 8);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_unix_peer(std::span(whole).first(length), 7)) << length;
  }
}

constexpr char kTcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50 1 0 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 51 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n"
    "   3: 0100007F:C352 0200000A:1F90 01 00000000:00000000 00:00000000 00000000     0        0 53 1 0 20 4 30 10 -1\n";
constexpr char kTcp6[] =
    "  sl  local_address                         remote_address                        st tx_queue rx_queue tr inode\n"
    "   0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 "
    "00:00000000 "
    "00000000     0        0 52 1 0 20 4 30 10 -1\n";

TEST(Sockets, BothEndsOfALoopbackConnectionAreInTheTable) {
  EXPECT_EQ(parse_tcp_peer(kTcp, kTcp6, 51), (Peer{52}));
  EXPECT_EQ(parse_tcp_peer(kTcp, kTcp6, 52), (Peer{51}));
  EXPECT_FALSE(parse_tcp_peer(kTcp, kTcp6, 50)) << "50 is a listening socket";
  EXPECT_FALSE(parse_tcp_peer(kTcp, kTcp6, 53)) << "the peer is on another machine";
  EXPECT_FALSE(parse_tcp_peer(kTcp, kTcp6, 99));
  EXPECT_FALSE(parse_tcp_peer("", "", 51));
}

TEST(Sockets, BytesOfALoopbackConnectionMayBeOnTheirWay) {
  const auto table = [](const char* queues, const char* timer) {
    return fmt::format(
        "0: 0100007F:1F90 0100007F:C350 01 {} {} 0 0 0 51 1\n1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 "
        "00:00000000 0 0 0 52 1\n",
        queues, timer);
  };
  const std::string paced = table("00000001:00000000", "04:00000140");
  EXPECT_EQ(parse_tcp_peer(paced, "", 52), (Peer{51, true, false})) << "the peer has not sent a byte yet";
  EXPECT_EQ(parse_tcp_peer(paced, "", 51), (Peer{52, false, false})) << "a window probe timer sends no queued bytes";
  const std::string lost = table("00000001:00000000", "01:00000140");
  EXPECT_EQ(parse_tcp_peer(lost, "", 51), (Peer{52, false, true}));
}

TEST(Descriptors, AnEpollListsWhatItWatches) {
  const auto entries =
      parse_epoll("pos:\t0\ntfd:        4 events:       1f data:                4  pos:0 ino:21d410 sdev:f\n");
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().fd, 4);
  EXPECT_EQ(entries->front().inode, 0x21d410U);
  EXPECT_TRUE(parse_epoll("pos:\t0\n")->empty());
  EXPECT_FALSE(parse_epoll("tfd:        x events: 1 ino:5\n"));
  EXPECT_FALSE(parse_epoll("tfd:        4 events: 1\n"));
}

TEST(Mappings, NameTheModuleAndTheSharedFileOfAWord) {
  std::vector<Mapping> mappings;
  for (const char* line :
       {"1000-2000 r--p 00000000 fe:00 7 /no/such/app", "2000-3000 rw-p 00001000 fe:00 7 /no/such/app",
        "3000-4000 rw-p 00000000 00:00 0 ", "5000-6000 rw-p 00000000 00:00 0 [heap]",
        "7000-8000 rw-s 00002000 00:01 9 /dev/zero (deleted)"}) {
    mappings.push_back(parse_mapping(line).value());
  }
  const ProcessMemory none(0);  // no process has the pid 0
  EXPECT_EQ(find_module(none, mappings, 0x2800).path, "/no/such/app");
  EXPECT_EQ(find_module(none, mappings, 0x3800).path, "/no/such/app") << ".bss";
  EXPECT_EQ(find_module(none, mappings, 0x3800).bias, 0x1000U);
  EXPECT_EQ(find_module(none, mappings, 0x5800).path, "");
  EXPECT_EQ(find_module(none, mappings, 0x4800).path, "");
  const auto place = find_shared_place(mappings, 0x7010);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, 0x2010U);
  EXPECT_TRUE(is_closed_to_others(getpid(), *place));
  EXPECT_FALSE(is_closed_to_others(getpid(), {"00:19", 9, 0, "/dev/shm/sem.jobs"}));
  EXPECT_FALSE(find_shared_place(mappings, 0x2800));
}

}  // namespace
}  // namespace forksight::proc
