// Mechanism: a thread is inside of a libc function that holds a lock of libc's own. The child calls the same function,
//            and waits for the lock. fork() does not reset that lock. Each variant tries one function. in_flight.h
//            describes how the thread is kept inside of the function.
// To blame:  the fork in a process with threads, and the child's call before exec. Only async-signal-safe functions are
//            allowed there, and none of these functions is async-signal-safe.
// User sees: a child that hangs now and then in a function that seems harmless.
// Fix:       call the function before the fork, or exec in the child.
// Repaired:  the thread has returned from the function before the fork. The variant tries all functions, one after the
//            other.
//            In a variant NAME-ends, the call ends as soon as main waits. Under --cure=quiesce-libc main waits in
//            fork(), so the cure works. Without the cure main waits for its child.
//
// EXPECT-BARE: hang
// EXPECT(setenv): libc-lock-in-flight proven hang lock=envlock holder=worker start=worker_main victims=1
// EXPECT-WHY(setenv): libc-lock-in-flight proven/likely hang lock=envlock holder=worker start=worker_main victims=1
// EXPECT-STACK(setenv): culprit call_setenv@setenv worker_main@call
// EXPECT-STACK(setenv): stack touch_setenv@touch_setenv main@child
// EXPECT(setenv-ends): libc-lock-in-flight proven hang lock=envlock holder=worker start=worker_main victims=1
// EXPECT-WHY(setenv-ends): libc-lock-in-flight proven/likely hang victims=1
// EXPECT-CURED(setenv-ends): --cure=quiesce-libc=20000 stdout="child: done"
// EXPECT(sem_open): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(sem_open): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(sem_open): culprit call_sem_open@sem_open worker_main@call
// EXPECT-STACK(sem_open): stack touch_sem_open@touch_sem_open main@child
// EXPECT(popen): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(popen): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(popen): culprit call_popen@popen worker_main@call
// EXPECT-STACK(popen): stack touch_popen@touch_popen main@child
// EXPECT(random): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(random): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(random): culprit call_random@random worker_main@call
// EXPECT-STACK(random): stack touch_random@touch_random main@child
// EXPECT(random-ends): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(random-ends): libc-lock-in-flight proven/likely hang victims=1
// EXPECT-CURED(random-ends): --cure=quiesce-libc=20000 stdout="child: done"
// EXPECT(aio_read): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(aio_read): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(aio_read): culprit call_aio_read@aio_read worker_main@call
// EXPECT-STACK(aio_read): stack touch_aio_read@touch_aio_read main@child
// EXPECT(syslog): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(syslog): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(syslog): culprit call_syslog@syslog worker_main@call
// EXPECT-STACK(syslog): stack touch_syslog@touch_syslog main@child
// In the variant timer_create the child has a second thread, which libc made for timers. A signal of any process could
// wake that thread. So the hang cannot be proved from outside. The parent waits until the child sleeps in the lock, and
// kills it.
//
// EXPECT-BARE(timer_create): error
// EXPECT(timer_create): libc-lock-in-flight possible/proven may-hang holder=worker start=worker_main victims=0
// EXPECT-STACK(timer_create): culprit make_timer@timer_create call_timer_create@in_call worker_main@call
// EXPECT-STACK(timer_create): stack make_timer@timer_create touch_timer_create@touch_timer_create main@child
// EXPECT(getaddrinfo): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(getaddrinfo): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(getaddrinfo): culprit call_getaddrinfo@getaddrinfo worker_main@call
// EXPECT-STACK(getaddrinfo): stack touch_getaddrinfo@touch_getaddrinfo main@child
// EXPECT(getaddrinfo-ends): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(getaddrinfo-ends): libc-lock-in-flight proven/likely hang victims=1
// EXPECT-CURED(getaddrinfo-ends): --cure=quiesce-libc=20000 stdout="child: done"
// EXPECT(setlocale): libc-lock-in-flight proven hang holder=worker start=worker_main victims=1
// EXPECT-WHY(setlocale): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=1
// EXPECT-STACK(setlocale): culprit call_setlocale@setlocale worker_main@call
// EXPECT-STACK(setlocale): stack touch_setlocale@touch_setlocale main@child
// EXPECT(strftime): libc-lock-in-flight proven hang lock=tzset_lock holder=worker start=worker_main victims=1
// EXPECT-WHY(strftime): libc-lock-in-flight proven/likely hang lock=tzset_lock holder=worker start=worker_main victims=1
// EXPECT-STACK(strftime): culprit call_strftime@strftime worker_main@call
// EXPECT-STACK(strftime): stack touch_strftime@touch_strftime main@child
// EXPECT(iconv_open): libc-lock-in-flight proven hang holder=worker start=worker_main victims=0
// EXPECT-WHY(iconv_open): libc-lock-in-flight proven/likely hang holder=worker start=worker_main victims=0
// EXPECT-STACK(iconv_open): culprit call_iconv_open@iconv_open worker_main@call
// EXPECT-STACK(iconv_open): stack touch_iconv_open@touch_iconv_open main@child
// EXPECT-CORE: libc-lock-in-flight proven hang start=worker_main
// EXPECT-CORE(setenv): libc-lock-in-flight proven hang lock=envlock start=worker_main
// EXPECT-CORE(strftime): libc-lock-in-flight proven hang lock=tzset_lock start=worker_main
// EXPECT-CORE(setenv-ends): libc-lock-in-flight proven/likely hang lock=envlock
// EXPECT-CORE(random-ends): libc-lock-in-flight proven/likely hang
// EXPECT-CORE(getaddrinfo-ends): libc-lock-in-flight proven/likely hang
#include <aio.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "in_flight.h"
#include "slow.h"

struct function {
  void (*prepare)(void);  // main calls it before the thread is made
  void (*call)(void);     // the thread calls it, and is kept inside of it
  void (*touch)(void);    // the child calls it
  void (*await)(void);    // main calls it, and it returns when the thread is inside; null: main waits for hold_is_on
  void (*release)(void);  // main calls it to let the thread go on; null: main passes hold_ends
  void (*end)(pid_t);     // main calls it to kill a child that hangs; null: main only waits for the child
};

// setenv() allocates memory while it holds its lock.
static void nothing(void) {}
static void call_setenv(void) {
  hold_in_realloc = 1;
  if (setenv("FSCASE", "thread", 1) != 0) abort();  // MARK: setenv
}
static void touch_setenv(void) {
  if (setenv("FSCASE", "child", 1) != 0) abort();  // MARK: touch_setenv
}

// sem_open() allocates memory for its table of open semaphores while it holds its lock.
static char semaphore[64];
static void name_semaphore(void) { snprintf(semaphore, sizeof semaphore, "/forksight-case-%d", (int)getpid()); }
static void call_sem_open(void) {
  hold_in_malloc = 1;
  sem_t* const made = sem_open(semaphore, O_CREAT, 0600, 1);  // MARK: sem_open
  if (made == SEM_FAILED) abort();
}
static void touch_sem_open(void) {
  sem_t* const made = sem_open(semaphore, O_CREAT, 0600, 1);  // MARK: touch_sem_open
  sem_unlink(semaphore);
  if (made == SEM_FAILED) abort();
}

// popen() holds its lock while it walks the list of the streams of earlier calls. For each of these streams, popen()
// adds an action for posix_spawn, which closes the stream in the new process. The ninth action makes the table of
// actions grow.
static void fill_popen_list(void) {
  for (int i = 0; i < 8; ++i) {
    if (popen(":", "w") == NULL) abort();
  }
}
static void call_popen(void) {
  hold_in_realloc = 2;
  FILE* const made = popen(":", "w");  // MARK: popen
  if (made == NULL) abort();
}
static void touch_popen(void) {
  FILE* const made = popen(":", "w");  // MARK: touch_popen
  if (made == NULL) abort();
}

// The state of random() is on hold_page.
static void move_random_state(void) {
  if (initstate(1, hold_page, 128) == NULL) abort();
  arm_page();
}
static volatile long number;
static void call_random(void) {
  number = random();  // MARK: random
}
static void touch_random(void) {
  number = random();  // MARK: touch_random
}

// A part of each request is for libc. aio_read() writes into this part while it holds libc's lock. This part is on
// hold_page.
static struct aiocb* request;
static void split_request(void) {
  request = (struct aiocb*)(hold_page - offsetof(struct aiocb, aio_sigevent) - sizeof(struct sigevent));
  request->aio_fildes = open("/dev/null", O_RDONLY);
  request->aio_sigevent.sigev_notify = SIGEV_NONE;
  arm_page();
}
static void call_aio_read(void) {
  if (aio_read(request) != 0) abort();  // MARK: aio_read
}
static void touch_aio_read(void) {
  static struct aiocb other;
  other.aio_sigevent.sigev_notify = SIGEV_NONE;
  if (aio_read(&other) != 0) abort();  // MARK: touch_aio_read
}

// The message of syslog() is on hold_page.
static void call_syslog(void) {
  syslog(LOG_DEBUG, "%s", hold_page);  // MARK: syslog
}
static void touch_syslog(void) {
  syslog(LOG_DEBUG, "from the child");  // MARK: touch_syslog
}

// libc's record of a timer ends with the pointers that link it into libc's list of timers. The last of these pointers
// is on hold_page.
enum { kTimerBytes = 88 };
static void run(union sigval unused) { (void)unused; }
static void make_timer(void) {
  static timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = run};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();  // MARK: timer_create
}
static void call_timer_create(void) {
  hold_bytes = kTimerBytes;
  hold_block = hold_page - kTimerBytes + sizeof(void*);
  make_timer();  // MARK: in_call
  hold_bytes = 0;
}
static void end_sleeper(pid_t child) {
  char path[64], text[16];
  snprintf(path, sizeof path, "/proc/%d/syscall", (int)child);
  for (int call = -1; call != SYS_futex; sched_yield()) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (got < 0) abort();
    close(fd);
    text[got] = '\0';
    if (sscanf(text, "%d", &call) != 1) call = -1;
  }
  kill(child, SIGKILL);
}
static void touch_timer_create(void) {
  make_timer();  // MARK: touch_timer_create
}

// getaddrinfo() reads resolv.conf while it holds its lock.
static void load_databases(void) { getpwnam("root"); }
static void call_getaddrinfo(void) {
  struct addrinfo* out = NULL;
  hold_bytes = 472;
  hold_in_malloc = 1;
  if (getaddrinfo("localhost", NULL, NULL, &out) == 0) freeaddrinfo(out);  // MARK: getaddrinfo
}
static void touch_getaddrinfo(void) {
  struct addrinfo* out = NULL;
  if (getaddrinfo("localhost", NULL, NULL, &out) == 0) freeaddrinfo(out);  // MARK: touch_getaddrinfo
}

// setlocale() loads the categories of a locale, and allocates their names, while it holds its lock.
static void call_setlocale(void) {
  hold_in_malloc = 1;
  if (setlocale(LC_ALL, "C.UTF-8") == NULL) abort();  // MARK: setlocale
}
static void touch_setlocale(void) {
  if (setlocale(LC_ALL, "C") == NULL) abort();  // MARK: touch_setlocale
}

// The time zone's file is a FIFO that main has open: a thread that reads it waits.
static char folder[32];
static char file[256];
static int end;
static void make_folder(void) {
  strcpy(folder, "/tmp/forksight-case-XXXXXX");
  if (mkdtemp(folder) == NULL) abort();
}
static void slow_zone(void) {
  char value[300];
  make_folder();
  make_fifo(folder, "zone", file);
  snprintf(value, sizeof value, ":%s", file);
  setenv("TZ", value, 1);
}
static void await_reader(void) {
  end = open(file, O_WRONLY);
  unlink(file);
  rmdir(folder);
}
static void end_file(void) { close(end); }
static void call_strftime(void) {
  char zone[32];
  const struct tm when = {.tm_mday = 1};
  strftime(zone, sizeof zone, "%Z", &when);  // MARK: strftime
}
static void touch_strftime(void) {
  char zone[32];
  const struct tm when = {.tm_mday = 1};
  strftime(zone, sizeof zone, "%Z", &when);  // MARK: touch_strftime
}

// The module of a character set is a FIFO. libc opens the FIFO while it holds its lock. libc reads the list of modules
// only once. So the repaired variant must try iconv_open() before the other functions.
static volatile int worker_tid;
static void slow_module(void) {
  static char path[300];
  make_folder();
  make_fifo(folder, "libfscase.so", file);
  snprintf(path, sizeof path, "%s/gconv-modules", folder);
  FILE* const list = fopen(path, "w");
  if (list == NULL) abort();
  fputs("module FSCASE// INTERNAL libfscase 1\nmodule INTERNAL FSCASE// libfscase 1\n", list);
  fclose(list);
  setenv("GCONV_PATH", folder, 1);
}
static void await_opener(void) {
  char path[300];
  baton_wait(hold_is_on);
  await_open(worker_tid, file);
  snprintf(path, sizeof path, "%s/gconv-modules", folder);
  unlink(path);
}
static void end_module(void) {
  close(open(file, O_WRONLY));
  unlink(file);
  rmdir(folder);
}
static void call_iconv_open(void) {
  worker_tid = (int)syscall(SYS_gettid);
  baton_pass(hold_is_on);
  iconv_open("FSCASE", "UTF-8");  // MARK: iconv_open
}
static void touch_iconv_open(void) {
  iconv_open("UTF-16", "UTF-8");  // MARK: touch_iconv_open
}

static const struct function kSetenv = {nothing, call_setenv, touch_setenv, NULL, NULL, NULL};
static const struct function kSemOpen = {name_semaphore, call_sem_open, touch_sem_open, NULL, NULL, NULL};
static const struct function kPopen = {fill_popen_list, call_popen, touch_popen, NULL, NULL, NULL};
static const struct function kRandom = {move_random_state, call_random, touch_random, NULL, NULL, NULL};
static const struct function kAioRead = {split_request, call_aio_read, touch_aio_read, NULL, NULL, NULL};
static const struct function kSyslog = {arm_page, call_syslog, touch_syslog, NULL, NULL, NULL};
static const struct function kTimerCreate = {arm_page, call_timer_create, touch_timer_create, NULL, NULL, end_sleeper};
static const struct function kGetaddrinfo = {load_databases, call_getaddrinfo, touch_getaddrinfo, NULL, NULL, NULL};
static const struct function kSetlocale = {nothing, call_setlocale, touch_setlocale, NULL, NULL, NULL};
static const struct function kStrftime = {slow_zone, call_strftime, touch_strftime, await_reader, end_file, NULL};
static const struct function kIconvOpen = {slow_module,  call_iconv_open, touch_iconv_open,
                                           await_opener, end_module,      NULL};

static struct baton worker_is_done;

static void* worker_main(void* function) {
  pthread_setname_np(pthread_self(), "worker");
  ((const struct function*)function)->call();  // MARK: call
  baton_pass(worker_is_done);
  park();
  return NULL;
}

static void go_on(const struct function* function) {
  if (function->release == NULL) {
    baton_pass(hold_ends);
  } else {
    function->release();
  }
  baton_wait(worker_is_done);
}

static void* disk_main(void* function) {
  unsigned long second = 0;
  long call = 0;
  pthread_setname_np(pthread_self(), "disk");
  while (call != SYS_nanosleep && call != SYS_wait4) {
    call = call_of(getpid(), &second);
    sched_yield();
  }
  go_on(function);
  park();
  return NULL;
}

// Makes a thread that calls the function, and returns when the thread is inside of it.
static void start(const struct function* function) {
  pthread_t worker;
  make_page();
  function->prepare();
  pthread_create(&worker, NULL, worker_main, (void*)function);
  if (function->await == NULL) {
    baton_wait(hold_is_on);
  } else {
    function->await();
  }
  sem_unlink(semaphore);
}

int main(void) {
  static const struct function* const kAll[] = {&kIconvOpen,   &kSetenv,    &kSemOpen, &kPopen,
                                                &kRandom,      &kAioRead,   &kSyslog,  &kTimerCreate,
                                                &kGetaddrinfo, &kSetlocale, &kStrftime};
  hold_is_on = baton_make();
  hold_ends = baton_make();
  worker_is_done = baton_make();
#ifdef REPAIRED
  for (size_t i = 0; i < sizeof kAll / sizeof *kAll; ++i) {
    start(kAll[i]);
    go_on(kAll[i]);
  }
#else
  (void)kAll;
  start(&HELD);
#endif
#ifdef ENDS
  pthread_t disk;
  pthread_create(&disk, NULL, disk_main, (void*)&HELD);
#else
  (void)disk_main;
#endif
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
#ifdef REPAIRED
    for (size_t i = 0; i < sizeof kAll / sizeof *kAll; ++i) kAll[i]->touch();
#else
    (&HELD)->touch();  // MARK: child
#endif
    puts("child: done");
    fflush(stdout);
    _exit(0);
  }
#ifndef REPAIRED
  if (HELD.end != NULL) HELD.end(child);
#endif
  return end_of(child);
}
