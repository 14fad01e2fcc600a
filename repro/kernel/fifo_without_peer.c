// Mechanism: a process opens a FIFO for reading. Its child should open the FIFO for writing, but ends before that.
//            -DREMOVED: the child lives on, but the name of the FIFO is removed before any process opens it for
//                       writing.
//            -DSERVICE: no process has ended. The process waits for its first client.
// To blame:  the child, which fails without a message. Or the removal of the name.
// User sees: the program stops in open().
// Fix:       check whether the child still lives. Or open the FIFO with O_RDWR, which does not wait.
// Repaired:  the child opens its end.
//
// EXPECT-BARE: hang
// EXPECT-NONE
// EXPECT-WHY: fifo-without-peer possible may-hang victims=0
// EXPECT-WHY(removed): fifo-without-peer likely hang victims=0
// EXPECT-NONE(service)
// EXPECT-WHY(service): none
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "asleep_in.h"

static char path[PATH_MAX];

// Makes the FIFO, and stores its path in `path`. The FIFO is in the folder of the file to which standard output goes.
// The judge removes this folder after the case. The case itself cannot remove the FIFO if it is killed.
static void name_fifo(void) {
  const ssize_t length = readlink("/proc/self/fd/1", path, sizeof path - 32);
  char* const slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
  snprintf(slash != NULL && strncmp(path, "/dev/", 5) != 0 ? slash : strcpy(path, "/tmp"), 32, "/fifo-%d", getpid());
  if (mkfifo(path, 0600) != 0) abort();
}

static int read_from(const char* name) {
  char byte;
  const int fd = open(name, O_RDONLY);
  return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : 1;
}

int main(void) {
  name_fifo();
#ifndef SERVICE
  const pid_t parent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#if defined(REPAIRED)
    const int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, "", 1) != 1) _exit(1);
    unlink(path);
#elif defined(REMOVED)
    wait_until_in(parent, SYS_openat);
    unlink(path);
    for (;;) pause();
#endif
    _exit(parent > 0 ? 0 : 1);
  }
#endif
  return read_from(path);
}
