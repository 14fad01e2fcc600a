/* Libc functions with locks of their own: the loader's list, asynchronous I/O, pipes to commands, named semaphores,
 * timers.
 */
#include "probe.h"

#include <aio.h>
#include <fcntl.h>
#include <link.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int stop_at_third(struct dl_phdr_info* info, size_t size, void* count) {
  errno = EDOM;
  return info->dlpi_phnum > 0 && size >= sizeof *info && ++*(int*)count == 3 ? 42 : 0;
}
PROBE(objects) {
  int count = 0;
  SHOW(dl_iterate_phdr(stop_at_third, &count));
  say("%d", count);
}

/* popen() starts a shell, which needs more stack than some contexts have. */
static void run_command(void) {
  char line[32] = "";
  FILE* const output = popen("echo from a shell", "r");
  SHOW(output == NULL);
  if (output == NULL) return;
  say("%s", fgets(line, sizeof line, output) == NULL ? "nothing" : strtok(line, "\n"));
  SHOW(pclose(output));
  SHOW(popen("true", "no mode") == NULL);
}
PROBE_IN(commands, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD) { run_command(); }

PROBE_IN(semaphores, ANYWHERE & ~IN_HANDLER) {
  char name[64];
  snprintf(name, sizeof name, "/forksight-probe-%d", (int)getpid());
  sem_t* const made = sem_open(name, O_CREAT | O_EXCL, 0600, 3);
  SHOW(made == SEM_FAILED);
  SHOW(sem_open(name, O_CREAT | O_EXCL, 0600, 3) == SEM_FAILED);
  SHOW(sem_open(name, 0) == made);
  int value = 0;
  if (made != SEM_FAILED) {
    sem_getvalue(made, &value);
    SHOW(sem_close(made));
    SHOW(sem_close(made));
  }
  say("value %d", value);
  SHOW(sem_unlink(name));
  SHOW(sem_open(name, 0) == SEM_FAILED);
}

PROBE(timers) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_NONE};
  SHOW(timer_create(CLOCK_MONOTONIC, &event, &timer));
  SHOW(timer_delete(timer));
  SHOW(timer_create(4711, &event, &timer));
}

static void use_aio(void) {
  static char buffer[8];
  struct aiocb read_zero = {.aio_fildes = open("/dev/zero", O_RDONLY), .aio_buf = buffer, .aio_nbytes = sizeof buffer};
  struct aiocb write_null = {.aio_fildes = open("/dev/null", O_WRONLY), .aio_buf = buffer, .aio_nbytes = sizeof buffer};
  const struct aiocb* const both[] = {&read_zero, &write_null};
  SHOW(aio_read(&read_zero));
  SHOW(aio_write(&write_null));
  while (aio_error(&read_zero) == EINPROGRESS) aio_suspend(both, 1, NULL);
  while (aio_error(&write_null) == EINPROGRESS) aio_suspend(both + 1, 1, NULL);
  SHOW(aio_return(&read_zero));
  SHOW(aio_return(&write_null));
  SHOW(aio_cancel(read_zero.aio_fildes, NULL));
  struct aiocb bad = {.aio_fildes = -1};
  SHOW(aio_fsync(4711, &bad));
  SHOW(aio_cancel(-1, NULL));
  struct aiocb* const list[] = {&read_zero};
  SHOW(lio_listio(LIO_WAIT, list, 1, NULL));
  SHOW(lio_listio(4711, list, 1, NULL));
}
static void use_aio64(void) {
  static char buffer[8];
  struct aiocb64 read_zero = {.aio_fildes = open("/dev/zero", O_RDONLY), .aio_buf = buffer, .aio_nbytes = 8};
  struct aiocb64 write_null = {.aio_fildes = open("/dev/null", O_WRONLY), .aio_buf = buffer, .aio_nbytes = 8};
  const struct aiocb64* const both[] = {&read_zero, &write_null};
  SHOW(aio_read64(&read_zero));
  SHOW(aio_write64(&write_null));
  while (aio_error64(&read_zero) == EINPROGRESS) aio_suspend64(both, 1, NULL);
  while (aio_error64(&write_null) == EINPROGRESS) aio_suspend64(both + 1, 1, NULL);
  SHOW(aio_return64(&read_zero));
  SHOW(aio_cancel64(read_zero.aio_fildes, NULL));
  struct aiocb64 bad = {.aio_fildes = -1};
  SHOW(aio_fsync64(4711, &bad));
  struct aiocb64* const list[] = {&read_zero};
  SHOW(lio_listio64(LIO_WAIT, list, 1, NULL));
}
/* Runs in children, because libc starts threads for asynchronous I/O, and these threads do not end at once. */
PROBE_IN(asynchronous_io, ANYWHERE & ~IN_HANDLER) {
  in_child(use_aio);
  in_child(use_aio64);
}
