/* ways_out MODE [SECONDS]: programs that look as if they hung, although something can still end their wait. Some of
 * them have twins, which do hang: nothing can end the wait of a twin. SECONDS is how long a slow atfork handler takes.
 * Each program writes one byte to standard output before it waits. The programs whose wait ends exit with status 7. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kWell = 7, kBroken = 99 };
enum { kSeen = 5 }; /* seconds within which `forksight run` notices that a process goes on */
/* Waits that end by themselves last `longer` times as long as usual. If `why` came too late on a busy machine, the test
 * starts the program again with a larger value. */
static unsigned longer = 1;

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t told;

static void say_ready(void) {
  if (write(STDOUT_FILENO, "x", 1) != 1) _exit(kBroken);
}

static void handle(int signal, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (sigaction(signal, &action, NULL) != 0) _exit(kBroken);
}

static void write_to_pipe(int signal) {
  (void)signal;
  if (write(ends[1], "x", 1) != 1) _exit(kBroken);
}

static void post(int signal) {
  (void)signal;
  sem_post(&told);
}

static void ignore(int signal) { (void)signal; }

static void make_pipe(void) {
  if (pipe(ends) != 0) _exit(kBroken);
}

static int read_pipe(void) {
  char byte;
  return (int)read(ends[0], &byte, 1);
}

/* A daemon that SIGTERM ends: the handler writes to the pipe that the daemon reads. */
static int self_pipe(void) {
  make_pipe();
  handle(SIGTERM, write_to_pipe);
  say_ready();
  for (;;) {
    const int got = read_pipe();
    if (got == 1) return kWell;
    if (got >= 0 || errno != EINTR) return kBroken;
  }
}

/* The alarm ends the read with EINTR. */
static int alarm_in_read(void) {
  make_pipe();
  handle(SIGALRM, ignore);
  alarm(4 * longer);
  say_ready();
  return read_pipe() < 0 && errno == EINTR ? kWell : kBroken;
}

/* A watchdog sends SIGABRT. The program has no handler of SIGSEGV, so its handler of SIGABRT is not one for crashes. */
static int watchdog_aborts(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGABRT};
  const struct itimerspec when = {.it_value = {.tv_sec = 4 * longer}};
  timer_t watchdog;
  make_pipe();
  handle(SIGABRT, ignore);
  if (timer_create(CLOCK_MONOTONIC, &event, &watchdog) != 0 || timer_settime(watchdog, 0, &when, NULL) != 0)
    return kBroken;
  say_ready();
  return read_pipe() < 0 && errno == EINTR ? kWell : kBroken;
}

static int sem_in_handler(void) {
  sem_init(&told, 0, 0);
  handle(SIGTERM, post);
  say_ready();
  while (sem_wait(&told) != 0) {
  }
  return kWell;
}

static void* sleep_on(void* unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}

/* The process has a second thread when it forks, so each child has lost a thread. All processes wait for SIGTERM. */
static int prefork(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  sem_init(&told, 0, 0);
  handle(SIGTERM, post);
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      while (sem_wait(&told) != 0) {
      }
      _exit(0);
    }
  }
  say_ready();
  while (sem_wait(&told) != 0) {
  }
  int well = 1;
  for (int i = 0; i < 2; ++i) {
    int status;
    kill(children[i], SIGTERM);
    if (waitpid(children[i], &status, 0) != children[i] || status != 0) well = 0;
  }
  return well ? kWell : kBroken;
}

/* Only the child's alarm ends the waits of both processes. */
static int child_has_alarm(void) {
  make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    handle(SIGALRM, ignore);
    alarm(4 * longer);
    _exit(read_pipe() < 0 && errno == EINTR ? 0 : kBroken);
  }
  close(ends[1]);
  say_ready();
  int status;
  return read_pipe() == 0 && waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

static int send_descriptor(int socket, int descriptor) {
  char byte = 'x';
  char space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, 0) == 1;
}

static int receive_descriptor(int socket) {
  char byte;
  char space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  int descriptor = -1;
  if (recvmsg(socket, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL) _exit(kBroken);
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

/* Sends a descriptor to a forked child, which has only the standard streams and one end of a socket pair. The child
 * receives the descriptor after four seconds. Returns the descriptor in the child, and -1 in the parent. */
static int send_slowly(int descriptor) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) _exit(kBroken);
  const pid_t child = fork();
  if (child == 0) {
    dup2(sockets[1], 3);
    closefrom(4);
    sleep(4 * longer);
    return receive_descriptor(3);
  }
  if (!send_descriptor(sockets[0], descriptor)) _exit(kBroken);
  return -1;
}

/* The descriptor of the pipe's writing end is in a message that a socket holds. Later the child receives the message,
 * and writes to the pipe. The reader also has a writing end, but never writes. */
static int descriptor_on_its_way(void) {
  make_pipe();
  const int taken = send_slowly(ends[1]);
  if (taken >= 0) _exit(write(taken, "x", 1) == 1 ? 0 : kBroken);
  say_ready();
  return read_pipe() == 1 ? kWell : kBroken;
}

static int make_file(void) {
  char name[] = "/tmp/forksight-ways-out-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0 || unlink(name) != 0) _exit(kBroken);
  return fd;
}

/* The child that receives the descriptor releases the lock. The parent has opened the file a second time, and waits for
 * the lock by this other descriptor. */
static int lock_on_its_way(void) {
  const int fd = make_file();
  char name[32];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const int other = open(name, O_RDWR | O_CLOEXEC);
  if (other < 0 || flock(fd, LOCK_EX) != 0) return kBroken;
  const int taken = send_slowly(fd);
  if (taken >= 0) _exit(flock(taken, LOCK_UN) == 0 ? 0 : kBroken);
  say_ready();
  return flock(other, LOCK_EX) == 0 ? kWell : kBroken;
}

static long futex(uint32_t* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Maps a page of the file. If `fd` is negative, maps anonymous memory. */
static uint32_t* map_word(int fd) {
  const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  uint32_t* const word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (word == MAP_FAILED) _exit(kBroken);
  return word;
}

/* The parent waits on a futex word in the memory of a file. The child that receives the descriptor of the file maps the
 * memory, and wakes the parent. */
static int memory_on_its_way(void) {
  const int fd = make_file();
  if (ftruncate(fd, 4096) != 0) return kBroken;
  const int taken = send_slowly(fd);
  uint32_t* const word = map_word(taken >= 0 ? taken : fd);
  if (taken >= 0) {
    *word = 1;
    _exit(futex(word, FUTEX_WAKE, 1) == 1 ? 0 : kBroken);
  }
  say_ready();
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0) futex(word, FUTEX_WAIT, 0);
  return kWell;
}

/* The parent waits on a futex word in the memory of a file. The child has a descriptor of the file. After four seconds
 * the child maps the memory, and wakes the parent. */
static int memory_as_descriptor(void) {
  const int fd = make_file();
  if (ftruncate(fd, 4096) != 0) return kBroken;
  const pid_t child = fork();
  if (child == 0) {
    sleep(4 * longer);
    uint32_t* const word = map_word(fd);
    *word = 1;
    _exit(futex(word, FUTEX_WAKE, 1) == 1 ? 0 : kBroken);
  }
  uint32_t* const word = map_word(fd);
  close(fd);
  say_ready();
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0) futex(word, FUTEX_WAIT, 0);
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

/* Installs a seccomp filter that blocks each read of `fd` until a process answers the call. Returns the descriptor
 * through which a process answers. */
static int hold_reads_of(int fd) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)fd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(kBroken);
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* The child seems to read a pipe to which no other process can write. In fact the filter blocks the call of read().
 * After four seconds the parent answers the call. */
static int held_by_filter(void) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return kBroken;
  const pid_t child = fork();
  if (child == 0) {
    make_pipe();
    const int listener = hold_reads_of(ends[0]);
    if (listener < 0 || !send_descriptor(sockets[1], listener)) _exit(kBroken);
    close(listener);
    close(sockets[0]);
    close(sockets[1]);
    _exit(read_pipe() == 1 ? 0 : kBroken);
  }
  const int listener = receive_descriptor(sockets[0]);
  close(sockets[0]);
  close(sockets[1]);
  say_ready();
  sleep(4 * longer);
  struct seccomp_notif call;
  memset(&call, 0, sizeof call);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return kBroken;
  struct seccomp_notif_resp answer = {.id = call.id, .val = 1};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0) return kBroken;
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

static int wait_for_status(pid_t child) {
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : kBroken;
}

static struct io_uring_params about;

static int make_ring(void) {
  memset(&about, 0, sizeof about);
  return (int)syscall(SYS_io_uring_setup, 4, &about);
}

/* Asks the kernel to write a byte to `end` after four seconds. Returns false if the kernel refuses. */
static int write_by_ring(int ring, int end, unsigned char flags) {
  static struct __kernel_timespec after;
  static const char byte = 'x';
  after.tv_sec = 4 * longer;
  const size_t size = about.sq_off.array + about.sq_entries * sizeof(uint32_t);
  char* const queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entries =
      mmap(NULL, about.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  if (queue == MAP_FAILED || (void*)entries == MAP_FAILED) return 0;
  entries[0] = (struct io_uring_sqe){
      .opcode = IORING_OP_TIMEOUT, .flags = IOSQE_IO_HARDLINK, .addr = (uintptr_t)&after, .len = 1};
  entries[1] =
      (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .flags = flags, .fd = end, .addr = (uintptr_t)&byte, .len = 1};
  uint32_t* const order = (void*)(queue + about.sq_off.array);
  order[0] = 0;
  order[1] = 1;
  __atomic_store_n((uint32_t*)(void*)(queue + about.sq_off.tail), 2, __ATOMIC_RELEASE);
  return syscall(SYS_io_uring_enter, ring, 2, 0, 0, NULL, 0) == 2;
}

/* The kernel writes to the pipe after four seconds, by io_uring, on behalf of a process that only reads the pipe. If
 * the kernel has no io_uring, or refuses it, a child writes instead. */
static int ring_writes(void) {
  make_pipe();
  const int ring = make_ring();
  if (ring < 0) {
    const pid_t child = fork();
    if (child == 0) _exit(sleep(4 * longer) == 0 && write(ends[1], "x", 1) == 1 ? 0 : kBroken);
    say_ready();
    return read_pipe() == 1 && wait_for_status(child) == 0 ? kWell : kBroken;
  }
  if (!write_by_ring(ring, ends[1], 0)) return kBroken;
  say_ready();
  return read_pipe() == 1 ? kWell : kBroken;
}

/* The kernel writes to the pipe of the child, by the io_uring of the parent. The parent has closed the pipe, but the
 * io_uring keeps it. If the kernel refuses io_uring, the parent writes itself. */
static int ring_of_parent(void) {
  make_pipe();
  const pid_t child = fork();
  if (child == 0) _exit(read_pipe() == 1 ? kWell : kBroken);
  const int ring = make_ring();
  const int is_kept = ring >= 0 && syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &ends[1], 1) == 0;
  if (is_kept && !write_by_ring(ring, 0, IOSQE_FIXED_FILE)) return kBroken;
  say_ready();
  if (!is_kept && (sleep(4 * longer) != 0 || write(ends[1], "x", 1) != 1)) return kBroken;
  close(ends[0]);
  close(ends[1]);
  return wait_for_status(child);
}

static int read_count(int event) {
  uint64_t count;
  return read(event, &count, sizeof count) == sizeof count ? kWell : kBroken;
}

static void add_to_count(int event) {
  const uint64_t one = 1;
  sleep(4 * longer);
  if (write(event, &one, sizeof one) != sizeof one) _exit(kBroken);
}

/* The kernel writes to the eventfd of the child when a timer of the parent expires, by asynchronous I/O of the parent.
 * The parent has closed the eventfd, but the kernel keeps it for the parent. If the kernel refuses asynchronous I/O,
 * the parent writes itself. */
static int aio_of_parent(void) {
  const int event = eventfd(0, EFD_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) _exit(read_count(event));
  const struct itimerspec when = {.it_value = {.tv_sec = 4 * longer}};
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL,
                         .aio_fildes = (uint32_t)timer,
                         .aio_buf = 1, /* POLLIN */
                         .aio_flags = IOCB_FLAG_RESFD,
                         .aio_resfd = (uint32_t)event};
  struct iocb* requests[] = {&request};
  aio_context_t queue = 0;
  if (timerfd_settime(timer, 0, &when, NULL) != 0) return kBroken;
  const int is_kept = syscall(SYS_io_setup, 1, &queue) == 0 && syscall(SYS_io_submit, queue, 1, requests) == 1;
  say_ready();
  if (!is_kept) add_to_count(event);
  close(event);
  return wait_for_status(child);
}

static int write_text(const char* folder, const char* name, const char* text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  const int is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
  close(file);
  return is_written;
}

/* The kernel writes to the eventfd when a memory control group of version 1 is removed. The child removes the group,
 * but has closed the eventfd. If there are no such groups, or the kernel refuses to make one, the child writes to the
 * eventfd itself. */
static int group_of_memory(void) {
  char folder[64];
  char path[128];
  char text[64];
  snprintf(folder, sizeof folder, "/sys/fs/cgroup/memory/forksight-ways-out-%d", (int)getpid());
  const int event = eventfd(0, EFD_CLOEXEC);
  int is_kept = mkdir(folder, 0700) == 0;
  if (is_kept) {
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", folder);
    const int usage = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(text, sizeof text, "%d %d 1048576", event, usage);
    is_kept = usage >= 0 && write_text(folder, "cgroup.event_control", text);
    close(usage);
    if (!is_kept) rmdir(folder);
  }
  const pid_t child = fork();
  if (child == 0) {
    if (!is_kept) add_to_count(event);
    close(event);
    if (is_kept) sleep(4 * longer);
    _exit(!is_kept || rmdir(folder) == 0 ? kWell : kBroken);
  }
  say_ready();
  return read_count(event) == kWell ? wait_for_status(child) : kBroken;
}

enum { kRequeue = FUTEX_CMP_REQUEUE };
static uint32_t* waited_for;
static uint32_t* moved_to;

static void* move_waiter(void* unused) {
  (void)unused;
  sleep(1);
  *waited_for = 1;
  if (syscall(SYS_futex, waited_for, kRequeue, 0, 1, moved_to, 1) != 1) _exit(kBroken);
  return NULL;
}

static void* map_anew(void* unused) {
  (void)unused;
  sleep(1);
  uint32_t* const page = mmap(waited_for, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (page != waited_for) _exit(kBroken);
  *page = 1;
  return NULL;
}

/* The first thread seems to wait on a futex word that no other process has. In fact another thread, which has ended,
 * moved the wait to another word, or mapped other memory over the word. A child wakes the first thread. */
static int wait_elsewhere(void* (*move)(void*), uint32_t* woken) {
  pthread_t thread;
  const pid_t child = fork();
  if (child == 0) {
    sleep(5);
    _exit(futex(woken, FUTEX_WAKE, 1) == 1 ? 0 : kBroken);
  }
  if (waited_for == NULL) waited_for = map_word(-1);
  pthread_create(&thread, NULL, move, NULL);
  say_ready();
  const long result = futex(waited_for, FUTEX_WAIT, 0);
  int status;
  pthread_join(thread, NULL);
  return result == 0 && waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

static int requeued(void) {
  moved_to = map_word(-1);
  return wait_elsewhere(move_waiter, moved_to);
}

static int remapped(void) {
  waited_for = map_word(-1);
  return wait_elsewhere(map_anew, waited_for);
}

/* A twin of requeued() and remapped(): nothing moves the wait, and no other process has the word, so nothing ends the
 * wait. */
static int own_shared_word(void) {
  say_ready();
  return (int)futex(map_word(-1), FUTEX_WAIT, 0);
}

/* Two locks that the program implements itself. Their bytes look like those of two pthread mutexes, each held by a
 * thread that waits for the other. In fact the main thread wakes both waiting threads after six seconds. */
static struct {
  uint32_t state, count;
  int32_t owner;
  uint32_t users, kind, rest[5];
} lookalikes[2];
static pthread_barrier_t both_wait;

static void* wait_for_other(void* is_first) {
  const int own = is_first == NULL;
  uint32_t* const word = &lookalikes[1 - own].state;
  lookalikes[own].owner = (int32_t)syscall(SYS_gettid);
  lookalikes[own].users = 1;
  lookalikes[own].state = 2;
  pthread_barrier_wait(&both_wait);
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 2) futex(word, FUTEX_WAIT_PRIVATE, 2);
  return NULL;
}

static int own_locks(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both_wait, NULL, 2);
  pthread_create(&threads[0], NULL, wait_for_other, &mutex);
  pthread_create(&threads[1], NULL, wait_for_other, NULL);
  say_ready();
  sleep(6);
  for (int i = 0; i < 2; ++i) {
    __atomic_store_n(&lookalikes[i].state, 0, __ATOMIC_SEQ_CST);
    futex(&lookalikes[i].state, FUTEX_WAKE_PRIVATE, 1);
    pthread_join(threads[i == 0 ? 1 : 0], NULL);
  }
  return kWell;
}

/* Makes both ends of a TCP connection. */
static void connect_tcp(int sockets[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1) != 0) _exit(kBroken);
  if (getsockname(listener, (struct sockaddr*)&address, &size) != 0) _exit(kBroken);
  if (connect(sockets[0], (struct sockaddr*)&address, size) != 0) _exit(kBroken);
  sockets[1] = accept(listener, NULL, NULL);
  close(listener);
  if (sockets[1] < 0) _exit(kBroken);
}

static int read_all(int socket, char* bytes, int count) {
  while (count > 0) {
    const ssize_t got = read(socket, bytes, (size_t)count);
    if (got <= 0) return 0;
    count -= (int)got;
  }
  return 1;
}

/* The child writes the last byte, but the kernel sends the byte only seconds later, because the connection has a pacing
 * rate. Linux applies the rate only after the tenth segment. */
static int bytes_not_yet_sent(void) {
  enum { kSegments = 16, kLast = 5000, kRate = 1000 };
  static char bytes[kSegments + kLast + 1];
  int sockets[2];
  connect_tcp(sockets);
  const pid_t child = fork();
  if (child == 0) {
    const unsigned rate = kRate;
    const int yes = 1;
    close(sockets[1]);
    if (setsockopt(sockets[0], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) != 0) _exit(kBroken);
    if (setsockopt(sockets[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) _exit(kBroken);
    for (int i = 0; i < kSegments; ++i) {
      if (write(sockets[0], bytes, 1) != 1) _exit(kBroken);
    }
    if (write(sockets[0], bytes, kLast) != kLast) _exit(kBroken);
    for (int left = 1; left != 0;) {
      if (ioctl(sockets[0], SIOCOUTQ, &left) != 0) _exit(kBroken);
    }
    if (write(sockets[0], bytes, 1) != 1) _exit(kBroken);
    _exit(read(sockets[0], bytes, 1) == 1 ? 0 : kBroken);
  }
  close(sockets[0]);
  say_ready();
  int status;
  if (!read_all(sockets[1], bytes, sizeof bytes) || write(sockets[1], "x", 1) != 1) return kBroken;
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

/* The place to which a signal handler jumps from a wait for a mutex. If the handler returned, the wait would go on. */
static sigjmp_buf outside;

static void jump(int signal) {
  (void)signal;
  siglongjmp(outside, 1);
}

static int lock_twice(void) {
  if (sigsetjmp(outside, 1) != 0) return kWell;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  return kBroken;
}

static int alarm_jumps(void) {
  handle(SIGALRM, jump);
  alarm(6);
  say_ready();
  return lock_twice();
}

static void unlock_mutex(int signal) {
  (void)signal;
  pthread_mutex_unlock(&mutex);
}

/* The handler runs in the thread that holds the mutex, and unlocks the mutex. */
static int alarm_unlocks(void) {
  handle(SIGALRM, unlock_mutex);
  alarm(6);
  say_ready();
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  return kWell;
}

static void cancel_itself(int signal) {
  (void)signal;
  pthread_cancel(pthread_self());
}

static void* lock_twice_and_be_cancelled(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  return unused;
}

/* The handler runs in the only thread that does not block the signal, and cancels that thread. */
static int alarm_cancels(void) {
  pthread_t thread;
  void* result = NULL;
  sigset_t set;
  handle(SIGALRM, cancel_itself);
  pthread_create(&thread, NULL, lock_twice_and_be_cancelled, NULL);
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  alarm(6);
  say_ready();
  return pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED ? kWell : kBroken;
}

static int timer_jumps(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  const struct itimerspec when = {.it_value = {.tv_sec = 6}};
  timer_t timer;
  handle(SIGUSR1, jump);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0) return kBroken;
  say_ready();
  return lock_twice();
}

static int childs_end_jumps(void) {
  handle(SIGCHLD, jump);
  const pid_t child = fork();
  if (child == 0) {
    sleep(6);
    _exit(0);
  }
  say_ready();
  const int result = lock_twice();
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? result : kBroken;
}

/* The kernel sends SIGIO when the child writes. */
static int ready_descriptor_jumps(void) {
  make_pipe();
  handle(SIGIO, jump);
  const pid_t child = fork();
  if (child == 0) {
    sleep(6);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : kBroken);
  }
  if (fcntl(ends[0], F_SETOWN, getpid()) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC) != 0) return kBroken;
  say_ready();
  const int result = lock_twice();
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? result : kBroken;
}

static void* hold_and_sleep(void* unused) {
  pthread_mutex_lock(&mutex);
  sem_post(&told);
  return sleep_on(unused);
}

/* The child waits for a mutex that a lost thread holds. The handler of its alarm jumps out of the wait. Then the child
 * goes on for a while, so that forksight can notice this. */
static int alarm_jumps_out_of_orphan(void) {
  pthread_t thread;
  sem_init(&told, 0, 0);
  pthread_create(&thread, NULL, hold_and_sleep, NULL);
  while (sem_wait(&told) != 0) {
  }
  const pid_t child = fork();
  if (child == 0) {
    handle(SIGALRM, jump);
    alarm(6);
    if (sigsetjmp(outside, 1) != 0) _exit(sleep(kSeen * longer) == 0 ? 0 : kBroken);
    pthread_mutex_lock(&mutex);
    _exit(kBroken);
  }
  say_ready();
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;

static void unlock(void* which) { pthread_mutex_unlock(which); }

static void* lock_both(void* is_first) {
  pthread_mutex_t* const one = is_first != NULL ? &mutex : &other_mutex;
  pthread_mutex_t* const two = is_first != NULL ? &other_mutex : &mutex;
  if (is_first != NULL) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  pthread_mutex_lock(one);
  pthread_cleanup_push(unlock, one);
  pthread_barrier_wait(&both_hold);
  pthread_mutex_lock(two);
  pthread_mutex_unlock(two);
  pthread_cleanup_pop(1);
  return NULL;
}

/* Two threads wait for each other's mutex. One of them has asynchronous cancellation. After six seconds the main thread
 * cancels that thread, whose cleanup handler then releases its mutex. */
static int cancelled_anywhere(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both_hold, NULL, 2);
  pthread_create(&threads[0], NULL, lock_both, &mutex);
  pthread_create(&threads[1], NULL, lock_both, NULL);
  say_ready();
  sleep(6);
  pthread_cancel(threads[0]);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  sleep(kSeen * longer);
  return kWell;
}

/* With --hang-after 0.2, a handler counts as stalled after two seconds. */
static unsigned seconds = 5;

static void sleep_in_handler(void) { sleep(seconds); }

static void compute_in_handler(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const time_t end = now.tv_sec + (time_t)seconds;
  while (now.tv_sec < end) clock_gettime(CLOCK_MONOTONIC, &now);
}

static int fork_slowly(void (*handler)(void)) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  pthread_atfork(NULL, NULL, handler);
  say_ready();
  int status;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

static int slow_atfork(void) { return fork_slowly(sleep_in_handler); }
static int busy_atfork(void) { return fork_slowly(compute_in_handler); }

/* This thread has a table of descriptors of its own, with a writing end of the pipe. The thread writes later. The
 * child, which reads the pipe, also has a writing end, but never writes. */
static void* write_later(void* unused) {
  (void)unused;
  if (unshare(CLONE_FILES) != 0) _exit(kBroken);
  sem_post(&told);
  sleep(kSeen * longer);
  if (write(ends[1], "x", 1) != 1) _exit(kBroken);
  return NULL;
}

/* Starts a thread that gets a table of descriptors of its own. Returns when the thread has this table. */
static void start_with_own_table(pthread_t* thread, void* (*run)(void*)) {
  sem_init(&told, 0, 0);
  pthread_create(thread, NULL, run, NULL);
  sem_wait(&told);
}

static int child_reads_pipe(void* (*other)(void*)) {
  pthread_t thread;
  make_pipe();
  start_with_own_table(&thread, other);
  const pid_t child = fork();
  if (child == 0) _exit(read_pipe() == 1 ? kWell : kBroken);
  close(ends[1]);
  say_ready();
  return wait_for_status(child);
}

static int thread_has_pipe(void) { return child_reads_pipe(write_later); }

static int timer;

static void* arm_later(void* unused) {
  const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
  (void)unused;
  if (unshare(CLONE_FILES) != 0) _exit(kBroken);
  sem_post(&told);
  sleep(kSeen * longer);
  if (timerfd_settime(timer, 0, &soon, NULL) != 0) _exit(kBroken);
  return NULL;
}

/* The child reads a timer that is not armed. Later, a thread with a table of its own arms the timer. */
static int thread_has_timer(void) {
  pthread_t thread;
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  start_with_own_table(&thread, arm_later);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t count;
    _exit(read(timer, &count, sizeof count) == sizeof count ? kWell : kBroken);
  }
  close(timer);
  say_ready();
  return wait_for_status(child);
}

static int from_child[2];

/* In this thread's own table, the number of the pipe's reading end belongs to another pipe, into which the child
 * writes. */
static void* pass_on(void* unused) {
  (void)unused;
  if (unshare(CLONE_FILES) != 0 || dup2(from_child[0], ends[0]) < 0) _exit(kBroken);
  sem_post(&told);
  if (read_pipe() != 1 || write(ends[1], "x", 1) != 1) _exit(kBroken);
  return NULL;
}

static int number_means_two_files(void) {
  pthread_t thread;
  make_pipe();
  if (pipe(from_child) != 0) return kBroken;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    close(ends[1]);
    sleep(kSeen * longer);
    _exit(write(from_child[1], "x", 1) == 1 ? kWell : kBroken);
  }
  close(from_child[1]);
  start_with_own_table(&thread, pass_on);
  say_ready();
  return read_pipe() == 1 ? wait_for_status(child) : kBroken;
}

static void wait_for_event(int poller) {
  struct epoll_event event;
  while (epoll_wait(poller, &event, 1, -1) != 1) {
  }
}

static void add_to(int poller, int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) _exit(kBroken);
}

/* The epoll instance watches an eventfd that only the child still has. In the parent, the number of this eventfd now
 * belongs to another eventfd. */
static int number_used_again(void) {
  const int poller = epoll_create1(0);
  const int watched = eventfd(0, 0);
  int done[2];
  add_to(poller, watched);
  if (pipe(done) != 0) return kBroken;
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t one = 1;
    char byte;
    close(poller);
    close(done[1]);
    sleep(kSeen * longer);
    if (write(watched, &one, sizeof one) != sizeof one) _exit(kBroken);
    _exit(read(done[0], &byte, 1) == 0 ? kWell : kBroken); /* the end of this child closes `watched` */
  }
  close(watched);
  if (eventfd(0, 0) != watched) return kBroken;
  say_ready();
  wait_for_event(poller);
  close(done[1]);
  return wait_for_status(child);
}

/* The twins begin here. Nothing that these programs do can end their waits. */
static int own_pipe(void) {
  make_pipe();
  say_ready();
  return read_pipe();
}

/* Rust's standard library and the JVM have handlers for faults. Such a handler does not end this wait. */
static int own_pipe_with_fault_handlers(void) {
  handle(SIGSEGV, ignore);
  handle(SIGBUS, ignore);
  return own_pipe();
}

/* The signal is blocked during the whole wait, so the handler never runs. */
static int own_pipe_with_blocked_signal(void) {
  sigset_t signals;
  handle(SIGTERM, ignore);
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  return own_pipe();
}

/* A handler that returns does not end a wait for a mutex, and nobody sends the signal. */
static int own_mutex_with_handler(void) {
  handle(SIGTERM, ignore);
  say_ready();
  return lock_twice();
}

static int own_tcp(void) {
  int sockets[2];
  char byte;
  connect_tcp(sockets);
  say_ready();
  return (int)read(sockets[0], &byte, 1);
}

static void* never_write(void* unused) {
  if (unshare(CLONE_FILES) != 0) _exit(kBroken);
  sem_post(&told);
  pthread_mutex_lock(&mutex);
  return unused;
}

/* The twin of thread_has_pipe: the thread never writes, because it waits for a mutex that the first thread holds. */
static int thread_has_pipe_and_waits(void) {
  pthread_mutex_lock(&mutex);
  return child_reads_pipe(never_write);
}

/* The twin of number_used_again: only the process itself has the eventfd. */
static int own_epoll(void) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  add_to(poller, eventfd(0, EFD_CLOEXEC));
  say_ready();
  wait_for_event(poller);
  return kWell;
}

/* Only this process has the pipe that its epoll instance watches. But its child has the instance, too, and lets it watch
 * another pipe, which has a byte. */
static int epoll_changed(void) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    sleep(4 * longer);
    make_pipe();
    if (write(ends[1], "x", 1) != 1) _exit(kBroken);
    add_to(poller, ends[0]);
    sleep(2);
    _exit(0);
  }
  make_pipe();
  add_to(poller, ends[0]);
  say_ready();
  wait_for_event(poller);
  return kWell;
}

static void* lock_once(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return unused;
}

/* The mutex is initialised again while a thread waits for it, and nobody wakes that thread. If a signal, a debugger or
 * an examination stops the thread, the thread then looks at the mutex again, and gets it. */
static int lock_made_anew(void) {
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, lock_once, NULL);
  while (*(volatile int*)&mutex != 2) sched_yield(); /* until the thread waits */
  usleep(100000);
  pthread_mutex_init(&mutex, NULL);
  say_ready();
  pthread_join(thread, NULL);
  return kWell;
}

/* Like lock_made_anew, but the mutex stays locked. */
static int own_locked_mutex(void) {
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, lock_once, NULL);
  say_ready();
  pthread_join(thread, NULL);
  return kWell;
}

static int full_eventfd(void) {
  const uint64_t most = UINT64_MAX - 1;
  const uint64_t one = 1;
  const int counter = eventfd(0, EFD_CLOEXEC);
  if (write(counter, &most, sizeof most) != sizeof most) return kBroken;
  say_ready();
  return write(counter, &one, sizeof one) == sizeof one ? kWell : kBroken;
}

static int lost_poster(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  sem_init(&told, 0, 0);
  const pid_t child = fork();
  if (child == 0) {
    while (sem_wait(&told) != 0) {
    }
    _exit(0);
  }
  say_ready();
  int status;
  return waitpid(child, &status, 0) == child ? 0 : kBroken;
}

static const struct {
  const char* name;
  int (*run)(void);
} kModes[] = {
    {"self_pipe", self_pipe},
    {"alarm_in_read", alarm_in_read},
    {"watchdog_aborts", watchdog_aborts},
    {"epoll_changed", epoll_changed},
    {"sem_in_handler", sem_in_handler},
    {"prefork", prefork},
    {"child_has_alarm", child_has_alarm},
    {"descriptor_on_its_way", descriptor_on_its_way},
    {"lock_on_its_way", lock_on_its_way},
    {"memory_on_its_way", memory_on_its_way},
    {"memory_as_descriptor", memory_as_descriptor},
    {"held_by_filter", held_by_filter},
    {"ring_writes", ring_writes},
    {"ring_of_parent", ring_of_parent},
    {"aio_of_parent", aio_of_parent},
    {"group_of_memory", group_of_memory},
    {"own_locks", own_locks},
    {"bytes_not_yet_sent", bytes_not_yet_sent},
    {"requeued", requeued},
    {"remapped", remapped},
    {"own_shared_word", own_shared_word},
    {"alarm_jumps", alarm_jumps},
    {"alarm_unlocks", alarm_unlocks},
    {"alarm_cancels", alarm_cancels},
    {"timer_jumps", timer_jumps},
    {"childs_end_jumps", childs_end_jumps},
    {"ready_descriptor_jumps", ready_descriptor_jumps},
    {"alarm_jumps_out_of_orphan", alarm_jumps_out_of_orphan},
    {"cancelled_anywhere", cancelled_anywhere},
    {"slow_atfork", slow_atfork},
    {"busy_atfork", busy_atfork},
    {"thread_has_pipe", thread_has_pipe},
    {"thread_has_timer", thread_has_timer},
    {"number_means_two_files", number_means_two_files},
    {"number_used_again", number_used_again},
    {"lock_made_anew", lock_made_anew},
    {"thread_has_pipe_and_waits", thread_has_pipe_and_waits},
    {"own_epoll", own_epoll},
    {"own_locked_mutex", own_locked_mutex},
    {"full_eventfd", full_eventfd},
    {"own_pipe", own_pipe},
    {"own_pipe_with_fault_handlers", own_pipe_with_fault_handlers},
    {"own_pipe_with_blocked_signal", own_pipe_with_blocked_signal},
    {"own_mutex_with_handler", own_mutex_with_handler},
    {"own_tcp", own_tcp},
    {"lost_poster", lost_poster},
};

int main(int argc, char** argv) {
  const char* const factor = getenv("WAITS_ARE_LONGER");
  if (argc > 2) seconds = (unsigned)atoi(argv[2]);
  if (factor != NULL) longer = (unsigned)atoi(factor);
  for (size_t i = 0; argc > 1 && i < sizeof kModes / sizeof *kModes; ++i) {
    if (strcmp(argv[1], kModes[i].name) == 0) return kModes[i].run();
  }
  return kBroken;
}
