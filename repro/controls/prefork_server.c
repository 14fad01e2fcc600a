// Mechanism: none. Main is a correct prefork server. The workers share the listening socket. Each worker closes the
//            descriptor of its parent's epoll instance, and makes an instance of its own. The descriptor of the new
//            instance gets the same number. Before a worker ends, it removes its descriptors from its own instance.
//            Main has an event loop of its own. Main is also the client. Main connects to the workers, and leaves each
//            connection to a child. The child ends the session. Main closes its own descriptor of the connection.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../baton.h"

enum { kWorkers = 3 };

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) abort();
}

static int next_event(int epoll) {
  struct epoll_event event;
  if (epoll_wait(epoll, &event, 1, -1) != 1) abort();
  return event.data.fd;
}

static void serve(int inherited, int listener) {
  close(inherited);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll != inherited) abort();
  watch(epoll, listener);
  if (next_event(epoll) != listener) abort();
  // If another worker has accepted the client first, this call waits for the next client.
  const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (client < 0) abort();
  watch(epoll, client);
  if (epoll_ctl(epoll, EPOLL_CTL_DEL, listener, NULL) != 0) abort();
  char letter = 0;
  while (next_event(epoll) == client && recv(client, &letter, 1, 0) == 1) {
    if (send(client, &letter, 1, MSG_NOSIGNAL) != 1) abort();
  }
  if (epoll_ctl(epoll, EPOLL_CTL_DEL, client, NULL) != 0) abort();
  _exit(0);
}

static int ask(int fd, char letter) {
  char answer = 0;
  return send(fd, &letter, 1, MSG_NOSIGNAL) == 1 && recv(fd, &answer, 1, 0) == 1 && answer == letter;
}

// A session that main begins and a child ends.
static void run_session(const struct sockaddr_un* address, socklen_t bytes, int epoll, struct baton ended) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (const struct sockaddr*)address, bytes) != 0 || !ask(fd, 'a')) abort();
  const pid_t child = fork();
  if (child == 0) {
    if (!ask(fd, 'b')) abort();
    shutdown(fd, SHUT_RDWR);
    baton_pass(ended);
    _exit(0);
  }
  close(fd);
  if (next_event(epoll) != ended.end[0]) abort();
  baton_wait(ended);
  if (end_of(child) != 0) abort();
}

int main(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t bytes = sizeof address;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Without a name, bind() puts the socket into the abstract namespace, under a name that the kernel chooses.
  if (bind(listener, (struct sockaddr*)&address, sizeof(sa_family_t)) != 0 || listen(listener, kWorkers) != 0) abort();
  if (getsockname(listener, (struct sockaddr*)&address, &bytes) != 0) abort();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const struct baton ended = baton_make();
  watch(epoll, ended.end[0]);
  pid_t workers[kWorkers];
  for (int i = 0; i < kWorkers; ++i) {
    workers[i] = fork();
    if (workers[i] == 0) serve(epoll, listener);
  }
  for (int i = 0; i < kWorkers; ++i) run_session(&address, bytes, epoll, ended);
  int status = 0;
  for (int i = 0; i < kWorkers; ++i) status |= end_of(workers[i]);
  return status;
}
