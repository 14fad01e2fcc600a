/* epoll: making instances, changing interests, waiting for events. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct Watched {
  int epoll;
  int end[2];
};

static struct Watched watch_pipe(void) {
  struct Watched watched;
  struct epoll_event event = {EPOLLIN, {.u32 = 7}};
  watched.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (watched.epoll < 0 || pipe2(watched.end, O_CLOEXEC) != 0) say("no descriptors: errno %d", errno);
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_ADD, watched.end[0], &event));
  return watched;
}

static void forget(const struct Watched* watched) {
  close(watched->epoll);
  close(watched->end[0]);
  close(watched->end[1]);
}

PROBE(instances) {
  const int first = epoll_create(1);
  const int second = epoll_create1(EPOLL_CLOEXEC);
  say("  %s, %s", first >= 0 ? "made" : "not made", second >= 0 ? "made" : "not made");
  say("  close-on-exec: %d, %d", fcntl(first, F_GETFD), fcntl(second, F_GETFD));
  SHOW(epoll_create(0));
  SHOW(epoll_create1(-1));
  close(first);
  close(second);
}

PROBE(interests) {
  struct Watched watched = watch_pipe();
  struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.u32 = 8}};
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_ADD, watched.end[0], &event));
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_MOD, watched.end[0], &event));
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_DEL, watched.end[0], NULL));
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_DEL, watched.end[0], NULL));
  SHOW(epoll_ctl(watched.epoll, EPOLL_CTL_DEL, -1, NULL));
  SHOW(epoll_ctl(-1, EPOLL_CTL_ADD, watched.end[0], &event));
  SHOW(epoll_ctl(watched.epoll, 77, watched.end[0], &event));
  forget(&watched);
}

PROBE(events_come) {
  struct Watched watched = watch_pipe();
  struct epoll_event event;
  const struct timespec none = {0, 0};
  memset(&event, 0, sizeof event);
  SHOW(epoll_wait(watched.epoll, &event, 1, 0));
  if (write(watched.end[1], "x", 1) != 1) say("nothing written");
  SHOW(epoll_wait(watched.epoll, &event, 1, -1));
  say("  events %u, data %u", event.events, event.data.u32);
  SHOW(epoll_pwait(watched.epoll, &event, 1, -1, NULL));
  SHOW(epoll_pwait2(watched.epoll, &event, 1, NULL, NULL));
  SHOW(epoll_pwait2(watched.epoll, &event, 1, &none, NULL));
  SHOW(epoll_wait(watched.epoll, &event, 0, 0));
  SHOW(epoll_wait(-1, &event, 1, 0));
  forget(&watched);
}

PROBE(deadlines) {
  struct Watched watched = watch_pipe();
  struct epoll_event event;
  const struct timespec soon = {0, 20 * 1000 * 1000};
  SHOW_TIMED(epoll_wait(watched.epoll, &event, 1, 20), 19);
  SHOW_TIMED(epoll_pwait2(watched.epoll, &event, 1, &soon, NULL), 19);
  forget(&watched);
}

/* The shim watches an instance that parent and child share after a fork. Here the child removes a descriptor that its
 * parent has added. */
static struct Watched g_shared;
static void remove_in_child(void) { SHOW(epoll_ctl(g_shared.epoll, EPOLL_CTL_DEL, g_shared.end[0], NULL)); }

PROBE_IN(shared_with_a_child, ANYWHERE & ~(IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP)) {
  struct epoll_event event = {EPOLLIN, {.u32 = 9}};
  g_shared = watch_pipe();
  in_child(remove_in_child);
  SHOW(epoll_ctl(g_shared.epoll, EPOLL_CTL_MOD, g_shared.end[0], &event));
  if (write(g_shared.end[1], "x", 1) != 1) say("nothing written");
  SHOW(epoll_wait(g_shared.epoll, &event, 1, 0));
  SHOW(epoll_ctl(g_shared.epoll, EPOLL_CTL_ADD, g_shared.end[0], &event));
  SHOW(epoll_wait(g_shared.epoll, &event, 1, 0));
  forget(&g_shared);
}

static void prepare(void) {
  char byte;
  if (g_shared.epoll == 0) return;
  while (read(g_shared.end[0], &byte, 1) == 1) {
  }
}
static int wait_once(void) {
  struct epoll_event event;
  return epoll_wait(g_shared.epoll, &event, 1, -1) == 1 ? 0 : errno;
}
static int wait_masked(void) {
  struct epoll_event event;
  sigset_t none;
  sigemptyset(&none);
  return epoll_pwait(g_shared.epoll, &event, 1, -1, &none) == 1 ? 0 : errno;
}
static void release(void) {
  if (write(g_shared.end[1], "x", 1) != 1) say("nothing written");
}
static void after(void) { prepare(); }

static void show_wait(const struct Blocking* blocking) {
  g_shared = watch_pipe();
  fcntl(g_shared.end[0], F_SETFL, O_NONBLOCK);
  show_blocking(blocking);
  forget(&g_shared);
}

PROBE_IN(epoll_wait_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"epoll_wait", prepare, wait_once, release, after, NULL};
  show_wait(&blocking);
}
PROBE_IN(epoll_pwait_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"epoll_pwait", prepare, wait_masked, release, after, NULL};
  show_wait(&blocking);
}

/* A wait at an instance that parent and child share after a fork. */
static void do_nothing(void) {}
PROBE_IN(shared_wait_blocks, ANYWHERE & ~(IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP)) {
  static const struct Blocking blocking = {"epoll_wait", prepare, wait_once, release, after, NULL};
  g_shared = watch_pipe();
  fcntl(g_shared.end[0], F_SETFL, O_NONBLOCK);
  in_child(do_nothing);
  show_blocking(&blocking);
  forget(&g_shared);
}
