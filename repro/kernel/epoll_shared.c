// Mechanism: main watches the reading end of a pipe by epoll and forks. The child cleans up what it has inherited, and
//            removes the pipe from the epoll instance. Both processes share one epoll instance. So main gets no more
//            events for its pipe.
//            -DWAITING: main already sleeps in epoll_wait() when the child removes the pipe. Another pipe wakes main.
// To blame:  EPOLL_CTL_DEL in the child. In most programs the child makes this call by closing an event loop that it
//            inherited.
// User sees: after a child was forked, an event loop misses the events of one descriptor, or all events.
// Fix:       the child closes the epoll descriptor, and makes an instance of its own. Closing the descriptor does not
//            change the inherited instance.
// Repaired:  the child closes the epoll descriptor.
//            These variants must be silent, too:
//            own:     the child adds an interest of its own to the inherited instance, and removes it again.
//            handed:  main has closed the descriptor whose interest the child removes.
//            again:   main adds the interest again before it waits.
//
// EXPECT-BARE: error
// EXPECT: epoll-shared likely/proven may-hang culprit="the interest in a pipe" victims=0
// EXPECT-STACK: culprit tidy_up@remove
// EXPECT-STACK: stack main@wait
// EXPECT-STACK: fork main@fork
//
// EXPECT-BARE(waiting): error
// EXPECT(waiting): epoll-shared likely/proven may-hang culprit="the interest in a pipe" victims=0
// EXPECT-STACK(waiting): culprit tidy_up@remove
//
// EXPECT-BARE(own): ok
// EXPECT-NONE(own)
// EXPECT-BARE(handed): ok
// EXPECT-NONE(handed)
// EXPECT-BARE(again): ok
// EXPECT-NONE(again)
#include <string.h>
#include <sys/epoll.h>

#include "../baton.h"

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) abort();
}

static void tidy_up(int epoll, struct baton work) {
#if defined(REPAIRED)
  close(epoll);
  close(work.end[0]);
#elif defined(OWN)
  struct baton other = baton_make();
  (void)work;
  watch(epoll, other.end[0]);
  if (epoll_ctl(epoll, EPOLL_CTL_DEL, other.end[0], NULL) != 0) abort();
#else
  if (epoll_ctl(epoll, EPOLL_CTL_DEL, work.end[0], NULL) != 0) abort();  // MARK: remove
#endif
}

#ifdef WAITING
// Returns when main sleeps. Main sleeps in epoll_wait() only.
static void wait_until_asleep(pid_t parent) {
  char path[64];
  char text[512];
  char state = 'R';
  snprintf(path, sizeof path, "/proc/%d/stat", parent);
  while (state != 'S') {
    FILE* const file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) abort();
    fclose(file);
    state = strrchr(text, ')')[2];
  }
}
#endif

int main(void) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct baton work = baton_make();
  struct epoll_event event;
  watch(epoll, work.end[0]);
#ifdef WAITING
  const pid_t parent = getpid();
  const struct baton done = baton_make();
  watch(epoll, done.end[0]);
#endif
#ifdef HANDED
  const struct baton closed = baton_make();
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef WAITING
    wait_until_asleep(parent);
#endif
#ifdef HANDED
    baton_wait(closed);
#endif
    tidy_up(epoll, work);
#ifdef WAITING
    baton_pass(done);
#endif
    _exit(0);
  }
#ifdef HANDED
  close(work.end[0]);
  baton_pass(closed);
#endif
#ifdef WAITING
  if (epoll_wait(epoll, &event, 1, -1) != 1 || event.data.fd != done.end[0]) abort();
  baton_wait(done);
#endif
  if (end_of(child) != 0) abort();
#ifdef HANDED
  work = baton_make();
  watch(epoll, work.end[0]);
#endif
#ifdef AGAIN
  watch(epoll, work.end[0]);
#endif
  baton_pass(work);
  const int events = epoll_wait(epoll, &event, 1, 0);  // MARK: wait
  return events == 1 && event.data.fd == work.end[0] ? 0 : 1;
}
