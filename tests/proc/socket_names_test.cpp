// Tests the names that forksight gives to sockets. forksight reads these names from the tables of /proc/net.
#include "proc/socket_names.hpp"

#include <gtest/gtest.h>

namespace forksight::proc {
namespace {

constexpr char kTcpTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1 0 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 42 1 0 20 4 30 10 -1\n"
    "   2: 0100007F:1F90 0200000A";

TEST(SocketNames, OfAListenerAndOfAConnection) {
  const auto listener = parse_inet_name(kTcpTable, "TCP", 41);
  ASSERT_TRUE(listener);
  EXPECT_EQ(describe_socket(*listener), "TCP socket 127.0.0.1:8080, listening");
  const auto connection = parse_inet_name(kTcpTable, "TCP", 42);
  ASSERT_TRUE(connection);
  EXPECT_EQ(describe_socket(*connection), "TCP socket 127.0.0.1:8080 to 10.0.0.2:443");
  EXPECT_FALSE(parse_inet_name(kTcpTable, "TCP", 43));
  EXPECT_FALSE(parse_inet_name(kTcpTable, "TCP", 0));
}

TEST(SocketNames, OfIpv6) {
  const auto name = parse_inet_name(
      "   0: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 7 1", "TCP",
      7);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->local, "[::1]:22");
  EXPECT_TRUE(name->listens);
}

TEST(SocketNames, OfUnixSockets) {
  constexpr char kUnix[] =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 51 /run/a b.sock\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 52\n";
  const auto listener = parse_unix_name(kUnix, 51);
  ASSERT_TRUE(listener);
  EXPECT_EQ(describe_socket(*listener), "UNIX socket /run/a b.sock, listening");
  const auto pair = parse_unix_name(kUnix, 52);
  ASSERT_TRUE(pair);
  EXPECT_EQ(describe_socket(*pair), "UNIX socket");
}

TEST(SocketNames, HostileTextsSayNothing) {
  for (const char* const text : {"", "\n\n", "0: : : 0A 0 0 0 0 0 7", "0: ZZ:1 0:0 0A 0 0 0 0 0 7"}) {
    const auto name = parse_inet_name(text, "TCP", 7);
    EXPECT_EQ(name.value_or(SocketName{}).local, "") << text;
    EXPECT_FALSE(parse_unix_name(text, 7)) << text;
  }
}

}  // namespace
}  // namespace forksight::proc
