// isolate SECONDS RESULT CMD [ARG…]: runs CMD apart from other tests. After the run, the processes that CMD started and
// the files that CMD made in /tmp do not exist any more.
//
// CMD gets namespaces of its own for processes, mounts, System V and POSIX message queues, and the network. /tmp and
// /dev/shm are empty, and the loopback device is up. If the build folder is below /tmp, it stays visible there.
// The file RESULT says how CMD ended: its exit status, 128 plus a signal, or "timeout". Process 1 of the namespace waits
// for CMD and then ends. The kernel then kills all processes that CMD left behind.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  fprintf(stderr, "isolate: %s: %s\n", what, strerror(errno));
  exit(125);
}

static void bring_up_loopback(void) {
  int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo"};
  if (descriptor < 0 || ioctl(descriptor, SIOCGIFFLAGS, &request) != 0)
    fail("loopback device");
  request.ifr_flags |= IFF_UP;
  if (ioctl(descriptor, SIOCSIFFLAGS, &request) != 0)
    fail("loopback device");
  close(descriptor);
}

// Finds the path of the build folder, which has this program in bin/. If the path is below /tmp, opens it as *descriptor.
// Otherwise *descriptor is -1.
static void find_build(char *path, size_t size, int *descriptor) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length < 0)
    fail("/proc/self/exe");
  path[length] = '\0';
  for (int levels = 0; levels < 2; ++levels)
    *strrchr(path, '/') = '\0';
  *descriptor = strncmp(path, "/tmp/", 5) == 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void bring_back(char *path, int descriptor) {
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
  mkdir(path, 0755);
  char from[64];
  snprintf(from, sizeof from, "/proc/self/fd/%d", descriptor);
  if (mount(from, path, NULL, MS_BIND, NULL) != 0)
    fail(path);
}

static void mount_own(void) {
  char build[PATH_MAX];
  int descriptor;
  find_build(build, sizeof build, &descriptor);
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    fail("private mounts");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
    fail("/proc");
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    fail("/tmp");
  if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    fail("/dev/shm");
  if (descriptor >= 0)
    bring_back(build, descriptor);
}

static void say(int descriptor, const char *text) {
  if (write(descriptor, text, strlen(text)) < 0)
    fail("result");
}

// Runs as process 1 of the namespace. Starts CMD, and waits for the end of CMD. Meanwhile it reaps orphaned processes.
static void be_init(int result, int seconds, char **command) {
  mount_own();
  bring_up_loopback();
  sigset_t child_ended, before;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ended, &before);
  pid_t program = fork();
  if (program == 0) {
    setsid();
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(command[0], command);
    fprintf(stderr, "isolate: %s: %s\n", command[0], strerror(errno));
    _exit(127);
  }
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += seconds;
  for (;;) {
    int status;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != program)
        continue;
      char text[16];
      snprintf(text, sizeof text, "%d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
      say(result, text);
      _exit(0);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec left = {.tv_sec = end.tv_sec - now.tv_sec};
    if (left.tv_sec <= 0) {
      say(result, "timeout");
      _exit(0);
    }
    sigtimedwait(&child_ended, NULL, &left);
  }
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) < 0)
    fail(path);
  close(file);
}

// An ordinary user may make the other namespaces only inside a user namespace. The user and group ids inside this
// namespace are the same as outside.
static void take_namespaces(void) {
  const int others = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET;
  const unsigned user = geteuid(), group = getegid();
  if (unshare(others | (user == 0 ? 0 : CLONE_NEWUSER)) != 0)
    fail("namespaces");
  if (user == 0)
    return;
  char line[64];
  snprintf(line, sizeof line, "%u %u 1", user, user);
  write_file("/proc/self/uid_map", line);
  write_file("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "%u %u 1", group, group);
  write_file("/proc/self/gid_map", line);
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "isolate SECONDS RESULT CMD [ARG...]\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int result = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (result < 0)
    fail(argv[2]);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  take_namespaces();
  pid_t init = fork();
  if (init == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    be_init(result, atoi(argv[1]), argv + 3);
  }
  int status = 0;
  while (waitpid(init, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
