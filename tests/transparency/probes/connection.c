/* Sockets: connecting, sending, receiving. */
#include "probe.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct Pair {
  int listener;
  int client;
  int server;
};

/* Connects two sockets in the abstract namespace, under a name that the kernel chooses. */
static struct Pair make_pair(void) {
  struct sockaddr_un address;
  socklen_t bytes = sizeof address;
  struct Pair pair;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  pair.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(pair.listener, (struct sockaddr*)&address, sizeof(sa_family_t)) != 0) say("not bound: errno %d", errno);
  if (listen(pair.listener, 4) != 0) say("not listening: errno %d", errno);
  getsockname(pair.listener, (struct sockaddr*)&address, &bytes);
  pair.client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SHOW(connect(pair.client, (struct sockaddr*)&address, bytes));
  pair.server = accept(pair.listener, NULL, NULL);
  return pair;
}

static void forget(const struct Pair* pair) {
  close(pair->listener);
  close(pair->client);
  close(pair->server);
}

PROBE(refusals) {
  struct sockaddr_un address;
  char byte = 0;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "/nowhere/to/be/found");
  SHOW(connect(fd, (struct sockaddr*)&address, sizeof address));
  SHOW(connect(-1, (struct sockaddr*)&address, sizeof address));
  SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
  SHOW(recv(fd, &byte, 1, 0));
  SHOW(send(-1, "x", 1, 0));
  SHOW(recvfrom(-1, &byte, 1, 0, NULL, NULL));
  SHOW(sendmsg(-1, NULL, 0));
  SHOW(recvmsg(-1, NULL, 0));
  close(fd);
}

static void talk(int from, int to) {
  char text[8] = "";
  struct iovec part = {text, sizeof text};
  struct iovec words = {(void*)"message", 7};
  struct msghdr message;
  SHOW(send(from, "one", 3, MSG_NOSIGNAL));
  SHOW(recv(to, text, sizeof text, MSG_PEEK));
  SHOW(recv(to, text, sizeof text, 0));
  say("  %.3s", text);
  SHOW(sendto(from, "two", 3, MSG_NOSIGNAL, NULL, 0));
  SHOW(recvfrom(to, text, sizeof text, 0, NULL, NULL));
  say("  %.3s", text);
  memset(&message, 0, sizeof message);
  message.msg_iov = &words;
  message.msg_iovlen = 1;
  SHOW(sendmsg(from, &message, MSG_NOSIGNAL));
  message.msg_iov = &part;
  SHOW(recvmsg(to, &message, 0));
  say("  %.7s", text);
  SHOW(recv(to, text, sizeof text, MSG_DONTWAIT));
}

PROBE(both_ways) {
  const struct Pair pair = make_pair();
  talk(pair.client, pair.server);
  talk(pair.server, pair.client);
  forget(&pair);
}

/* The shim watches a connection that both parent and child use after a fork. */
static struct Pair g_pair;
static void use_in_child(void) { talk(g_pair.client, g_pair.server); }

PROBE_IN(shared_with_a_child, ANYWHERE & ~(IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP)) {
  g_pair = make_pair();
  in_child(use_in_child);
  talk(g_pair.client, g_pair.server);
  in_child(use_in_child);
  talk(g_pair.client, g_pair.server);
  forget(&g_pair);
}

static char g_byte;
static void prepare(void) {
  while (recv(g_pair.client, &g_byte, 1, MSG_DONTWAIT) == 1) {
  }
  g_byte = 0;
}
static int receive_once(void) { return recv(g_pair.client, &g_byte, 1, 0) == 1 ? 0 : errno; }
static void release(void) { send(g_pair.server, "x", 1, MSG_NOSIGNAL); }
static void after(void) { say("  %s", g_byte == 'x' ? "received" : "nothing received"); }

PROBE_IN(recv_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"recv", prepare, receive_once, release, after, NULL};
  g_pair = make_pair();
  show_blocking(&blocking);
  forget(&g_pair);
}
