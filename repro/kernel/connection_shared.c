// Mechanism: main connects to a server, asks the server a question, and forks. The child asks over the same connection.
//            Then main asks, and then the child asks again. The server takes both processes for one client. Each answer
//            goes to the process that reads first.
//            -DFAREWELL: the child asks nothing, but sends the protocol's message for the end of the session. After
//                        that message the server does not answer main any more.
// To blame:  the fork with an open connection. Both processes go on to use the connection.
// User sees: answers to questions of another process, protocol errors, "server closed the connection unexpectedly".
// Fix:       connect after the fork, each process for itself.
// Repaired:  each process has a connection of its own.
//            These variants must be silent, too:
//            split:   main sends and the child receives: two processes that act as one client.
//            closed:  the child closes its descriptor and sends nothing.
//            handed:  main leaves the connection to the child.
//            locked:  main and the child take turns, by a lock that they share.
//
// EXPECT-BARE: error
// EXPECT: connection-shared likely corruption victims=0
// EXPECT-STACK: stack ask@send
// EXPECT-STACK: culprit ask@send
// EXPECT-STACK: fork main@fork
//
// EXPECT-BARE(farewell): error
// EXPECT(farewell): connection-shared possible corruption victims=0
// EXPECT-STACK(farewell): stack say_goodbye@goodbye
// EXPECT-STACK(farewell): culprit ask@send
//
// EXPECT-BARE(split): ok
// EXPECT-NONE(split)
// EXPECT-BARE(closed): ok
// EXPECT-NONE(closed)
// EXPECT-BARE(handed): ok
// EXPECT-NONE(handed)
// EXPECT-BARE(locked): ok
// EXPECT-NONE(locked)
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../baton.h"

// A question has two bytes: who asks, and the number of the question in the session, as the asking process counts it.
// An answer has two bytes, too: who asked, and the number of the question on the connection, as the server counts it.
struct question {
  char who;
  char number;
};

static void serve_one(int connection) {
  struct question question;
  char asked = 0;
  while (recv(connection, &question, sizeof question, MSG_WAITALL) == sizeof question && question.who != 'q') {
    const struct question answer = {question.who, ++asked};
    if (send(connection, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
  }
  close(connection);
}

// Main kills the server before main itself ends.
static struct sockaddr_in start_server(pid_t* server) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 4) != 0) abort();
  if (getsockname(listener, (struct sockaddr*)&address, &bytes) != 0) abort();
  *server = fork();
  if (*server == 0) {
    // The server serves one client at a time, until that client's session ends.
    for (;;) serve_one(accept(listener, NULL, NULL));
  }
  close(listener);
  return address;
}

static int connect_to(struct sockaddr_in address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) abort();
  return fd;
}

static __attribute__((unused)) void send_question(int fd, struct question question) {
  if (send(fd, &question, sizeof question, MSG_NOSIGNAL) != sizeof question) abort();  // MARK: send_alone
}

static int is_answered(int fd, struct question question) {
  struct question answer = {0, 0};
  if (recv(fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer) return 0;
  return answer.who == question.who && answer.number == question.number;
}

// Asks a question. Returns 1 if the answer has the number that this process expects.
static __attribute__((unused)) int ask(int fd, char who, char number) {
  const struct question question = {who, number};
  if (send(fd, &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return 0;  // MARK: send
  return is_answered(fd, question);
}

static __attribute__((unused)) void say_goodbye(int fd) {
  const struct question goodbye = {'q', 0};
  if (send(fd, &goodbye, sizeof goodbye, MSG_NOSIGNAL) != sizeof goodbye) abort();  // MARK: goodbye
  close(fd);
}

static int run_child(int fd, struct sockaddr_in address, struct baton go, struct baton gone, pthread_mutex_t* turn) {
  (void)fd, (void)address, (void)go, (void)gone, (void)turn;
#if defined(REPAIRED)
  close(fd);
  // The server serves one client at a time, so the child waits until main has closed its connection.
  baton_wait(go);
  fd = connect_to(address);
  return ask(fd, 'c', 1) && ask(fd, 'c', 2) ? 0 : 1;
#elif defined(FAREWELL)
  say_goodbye(fd);
  return 0;
#elif defined(CLOSED)
  close(fd);
  return 0;
#elif defined(SPLIT)
  return is_answered(fd, (struct question){'m', 2}) ? 0 : 1;
#elif defined(HANDED)
  return ask(fd, 'c', 2) && ask(fd, 'c', 3) ? 0 : 1;
#elif defined(LOCKED)
  for (char number = 2; number < 6; number += 2) {
    if (number != 2) baton_wait(go);
    pthread_mutex_lock(turn);
    if (!ask(fd, 'c', number)) return 1;
    pthread_mutex_unlock(turn);
    baton_pass(gone);
  }
  return 0;
#else
  const int first = ask(fd, 'c', 2);
  baton_pass(gone);
  baton_wait(go);
  return ask(fd, 'c', 3) && first ? 0 : 1;
#endif
}

static int run_parent(int fd, struct baton go, struct baton gone, pthread_mutex_t* turn, pid_t child) {
  (void)go, (void)gone, (void)turn;
#if defined(REPAIRED)
  const int well = ask(fd, 'm', 2) && ask(fd, 'm', 3);
  close(fd);
  baton_pass(go);
  return end_of(child) == 0 && well ? 0 : 1;
#elif defined(HANDED)
  close(fd);
  return end_of(child);
#elif defined(SPLIT)
  send_question(fd, (struct question){'m', 2});
  return end_of(child);
#elif defined(LOCKED)
  int well = 1;
  for (char number = 3; number < 7; number += 2) {
    baton_wait(gone);
    pthread_mutex_lock(turn);
    well = ask(fd, 'm', number) && well;
    pthread_mutex_unlock(turn);
    if (number == 3) baton_pass(go);
  }
  return end_of(child) == 0 && well ? 0 : 1;
#elif defined(FAREWELL) || defined(CLOSED)
  return end_of(child) == 0 && ask(fd, 'm', 2) ? 0 : 1;
#else
  baton_wait(gone);
  const int well = ask(fd, 'm', 2);
  baton_pass(go);
  return end_of(child) == 0 && well ? 0 : 1;
#endif
}

int main(void) {
  pid_t server = 0;
  const struct sockaddr_in address = start_server(&server);
  const int fd = connect_to(address);
  const struct baton go = baton_make();
  const struct baton gone = baton_make();
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutex_t* const turn = mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (turn == MAP_FAILED || pthread_mutex_init(turn, &shared) != 0) abort();
  if (!ask(fd, 'm', 1)) abort();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(run_child(fd, address, go, gone, turn));
  const int status = run_parent(fd, go, gone, turn, child);
  kill(server, SIGKILL);
  (void)end_of(server);
  return status;
}
