// Mechanism: two processes write to each other, and neither reads before it has written everything. The pipes cannot
//            hold so much data.
//            -DSOCKETS: the same over a pair of sockets.
//            -DTCP:     each process waits for a byte of the other one, over a TCP connection.
//            -DWAIT:    the parent does not read. It waits for the end of a child that writes.
// To blame:  the processes, which write everything before they read anything.
// User sees: the program works with small data, and stops with more than 64 KiB.
// Fix:       read while writing. Read before waiting for the child's end.
// Repaired:  the parent reads first. With -DTCP it writes its byte first.
//
// EXPECT-BARE: hang
// EXPECT: pipe-deadlock proven hang victims=0
// EXPECT-BARE(tcp_speaks): ok
// EXPECT-NONE(tcp_speaks)
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../baton.h"

static char bytes[1 << 20];

__attribute__((unused)) static void send_all(int fd) {
  for (size_t done = 0; done < sizeof bytes;) {
    const ssize_t wrote = write(fd, bytes + done, sizeof bytes - done);
    if (wrote <= 0) abort();
    done += (size_t)wrote;
  }
}

__attribute__((unused)) static void receive_all(int fd) {
  for (size_t done = 0; done < sizeof bytes;) {
    const ssize_t got = read(fd, bytes + done, sizeof bytes - done);
    if (got <= 0) abort();
    done += (size_t)got;
  }
}

#ifdef TCP
static void connect_tcp(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1) != 0) abort();
  if (getsockname(listener, (struct sockaddr*)&address, &size) != 0) abort();
  if (connect(ends[0], (struct sockaddr*)&address, size) != 0) abort();
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
  if (ends[1] < 0) abort();
}

static void speak(int fd) {
  if (write(fd, "x", 1) != 1) abort();
}

static void hear(int fd) {
  char byte;
  if (read(fd, &byte, 1) != 1) abort();
}

/* Each process waits for a byte of the other process before it writes its own byte. */
int main(void) {
  int ends[2];
  connect_tcp(ends);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    hear(ends[1]);
    speak(ends[1]);
    _exit(0);
  }
  close(ends[1]);
#ifdef REPAIRED
  speak(ends[0]);
#endif
  hear(ends[0]);
  return end_of(child);
}
#else
int main(void) {
#ifdef SOCKETS
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  const int parent_in = ends[0], parent_out = ends[0], child_in = ends[1], child_out = ends[1];
#else
  const struct baton there = baton_make(), back = baton_make();
  const int parent_in = back.end[0], parent_out = there.end[1], child_in = there.end[0], child_out = back.end[1];
#endif
  const pid_t child = fork();
  if (child == 0) {
    close(parent_in);
    if (parent_out != parent_in) close(parent_out);
    send_all(child_out);
#ifndef WAIT
    receive_all(child_in);
#endif
    _exit(0);
  }
  close(child_in);
  if (child_out != child_in) close(child_out);
#if defined(REPAIRED)
  receive_all(parent_in);
  send_all(parent_out);
#elif !defined(WAIT)
  send_all(parent_out);
  receive_all(parent_in);
#endif
  return end_of(child);
}
#endif
