/* short_calls SHIM LOG NAME PLACE AMOUNT [--refuse OTHER] PROGRAM [ARGUMENT...]
 *
 * Runs a program, and makes system calls of the shim transfer fewer bytes than the shim asks for. The tool makes the
 * length argument smaller before the call, and restores it after the call. The kernel transfers the bytes itself, so
 * the shim gets the right bytes, and a result that the kernel could also return without this tool.
 *
 *   SHIM    the path of the shim; calls from other code are not changed
 *   LOG     gets a line for each call NAME of the shim: the thread, the number of the call in this thread, the bytes
 *           asked for, the bytes that were let through, and the kernel's answer
 *   NAME    read, write, pread64, pwrite64, readv, writev, getdents64 or process_vm_readv
 *   PLACE   which call of each thread is shortened: a number, "all", or "none"
 *   AMOUNT  how much a shortened call transfers: "one" byte, or "half" of its bytes
 *   OTHER   a call of the shim that always fails with EPERM; only process_vm_readv is possible
 *
 * Ends with the status of the program. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostThreads = 256, kLeastEntries = 512 };

/* A kind of call. Its length is an argument, or, with has_vector, the length in the first struct iovec. */
struct kind {
  const char* name;
  long number;
  bool has_vector;
};

static const struct kind kKinds[] = {
    {"read", SYS_read, false},
    {"write", SYS_write, false},
    {"pread64", SYS_pread64, false},
    {"pwrite64", SYS_pwrite64, false},
    {"getdents64", SYS_getdents64, false},
    {"readv", SYS_readv, true},
    {"writev", SYS_writev, true},
    {"process_vm_readv", SYS_process_vm_readv, true},
};

struct thread {
  pid_t tid;
  unsigned long calls;    /* how many calls of the kind NAME the shim has made in this thread */
  bool is_in_call;        /* the last stop was the beginning of a call */
  bool is_of_kind;        /* the current call has the kind NAME, and the shim makes it */
  bool is_changed;        /* the tool has shortened the current call */
  bool is_refused;        /* the call fails with EPERM */
  uint64_t asked;         /* bytes */
  uint64_t let_through;   /* bytes */
  uint64_t kept_argument; /* the length argument that the tool restores after the call */
  uint64_t kept_length;
  uint64_t vector; /* the address of the first struct iovec */
};

static struct thread threads[kMostThreads];
static const char* shim;
static const struct kind* kind;
static long refused = -1;
static unsigned long place; /* 0: none */
static bool is_all;
static bool is_one;
static FILE* log_file;

static void fail(const char* what) {
  fprintf(stderr, "short_calls: %s: %s\n", what, strerror(errno));
  exit(99);
}

static struct thread* find_thread(pid_t tid) {
  struct thread* empty = NULL;
  for (int i = 0; i < kMostThreads; ++i) {
    if (threads[i].tid == tid) return &threads[i];
    if (threads[i].tid == 0 && empty == NULL) empty = &threads[i];
  }
  if (empty == NULL) fail("too many threads");
  memset(empty, 0, sizeof *empty);
  empty->tid = tid;
  return empty;
}

static bool is_of_shim(pid_t tid, uint64_t address) {
  char path[64];
  char line[4400];
  bool is_found = false;
  snprintf(path, sizeof path, "/proc/%d/maps", tid);
  FILE* const maps = fopen(path, "r");
  if (maps == NULL) return false;
  while (!is_found && fgets(line, sizeof line, maps) != NULL) {
    uint64_t start = 0;
    uint64_t end = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 || address < start || address >= end) continue;
    is_found = strstr(line, shim) != NULL;
  }
  fclose(maps);
  return is_found;
}

static uint64_t peek(pid_t tid, uint64_t address) {
  errno = 0;
  const long word = ptrace(PTRACE_PEEKDATA, tid, (void*)address, NULL);
  if (errno != 0) fail("PTRACE_PEEKDATA");
  return (uint64_t)word;
}

static void poke(pid_t tid, uint64_t address, uint64_t word) {
  if (ptrace(PTRACE_POKEDATA, tid, (void*)address, (void*)word) != 0) fail("PTRACE_POKEDATA");
}

static void get_registers(pid_t tid, struct user_regs_struct* registers) {
  if (ptrace(PTRACE_GETREGS, tid, NULL, registers) != 0) fail("PTRACE_GETREGS");
}

static void set_registers(pid_t tid, struct user_regs_struct* registers) {
  if (ptrace(PTRACE_SETREGS, tid, NULL, registers) != 0) fail("PTRACE_SETREGS");
}

/* Returns the argument with the number of bytes or vectors. It is the third argument of each of these calls. */
static unsigned long long* length_of(struct user_regs_struct* registers) { return &registers->rdx; }

static uint64_t shorten(uint64_t bytes) {
  uint64_t shorter = is_one ? 1 : bytes / 2;
  /* getdents64 fails if the buffer has no room for one entry. */
  if (kind->number == SYS_getdents64 && shorter < kLeastEntries) shorter = kLeastEntries;
  return shorter == 0 || shorter > bytes ? bytes : shorter;
}

static void begin_call(struct thread* thread) {
  struct user_regs_struct registers;
  get_registers(thread->tid, &registers);
  const long number = (long)registers.orig_rax;
  thread->is_of_kind = thread->is_changed = thread->is_refused = false;
  if (number != kind->number && number != refused) return;
  if (!is_of_shim(thread->tid, registers.rip)) return;
  if (number == refused) {
    thread->is_refused = true;
    registers.orig_rax = (unsigned long long)-1;
    set_registers(thread->tid, &registers);
    return;
  }
  thread->is_of_kind = true;
  ++thread->calls;
  thread->vector = registers.rsi;
  thread->kept_argument = *length_of(&registers);
  thread->kept_length = kind->has_vector ? peek(thread->tid, thread->vector + 8) : thread->kept_argument;
  thread->asked = thread->kept_length;
  for (uint64_t i = 1; kind->has_vector && i < thread->kept_argument; ++i)
    thread->asked += peek(thread->tid, thread->vector + 16 * i + 8);
  thread->let_through = thread->asked;
  if (!is_all && thread->calls != place) return;
  thread->let_through = shorten(kind->has_vector ? thread->kept_length : thread->asked);
  if (thread->let_through == thread->asked) return;
  thread->is_changed = true;
  if (kind->has_vector) poke(thread->tid, thread->vector + 8, thread->let_through);
  *length_of(&registers) = kind->has_vector ? 1 : thread->let_through;
  set_registers(thread->tid, &registers);
}

static void end_call(struct thread* thread) {
  struct user_regs_struct registers;
  if (!thread->is_of_kind && !thread->is_refused) return;
  get_registers(thread->tid, &registers);
  if (thread->is_refused) registers.rax = (unsigned long long)-EPERM;
  if (thread->is_changed) {
    *length_of(&registers) = thread->kept_argument;
    if (kind->has_vector) poke(thread->tid, thread->vector + 8, thread->kept_length);
  }
  if (thread->is_changed || thread->is_refused) set_registers(thread->tid, &registers);
  if (thread->is_of_kind) {
    fprintf(log_file, "%d %lu %" PRIu64 " %" PRIu64 " %lld\n", thread->tid, thread->calls, thread->asked,
            thread->let_through, (long long)registers.rax);
  }
}

/* Returns the status of the program. */
static int trace(pid_t program) {
  int result = 99;
  for (;;) {
    int status = 0;
    const pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0) return result;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      find_thread(tid)->tid = 0;
      if (tid == program) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    struct thread* const thread = find_thread(tid);
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    int passed_on = 0;
    if (signal == (SIGTRAP | 0x80)) {
      thread->is_in_call = !thread->is_in_call;
      if (thread->is_in_call) {
        begin_call(thread);
      } else {
        end_call(thread);
      }
    } else if (event == PTRACE_EVENT_EXEC) {
      /* The end of execve() follows as another stop. */
    } else if (event == 0) {
      passed_on = signal;
    }
    /* ESRCH: the thread was killed meanwhile. */
    if (ptrace(PTRACE_SYSCALL, tid, NULL, (void*)(long)passed_on) != 0 && errno != ESRCH) fail("PTRACE_SYSCALL");
  }
}

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  shim = argv[1];
  log_file = fopen(argv[2], "we");
  if (log_file == NULL) fail(argv[2]);
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    if (strcmp(kKinds[i].name, argv[3]) == 0) kind = &kKinds[i];
  }
  is_all = strcmp(argv[4], "all") == 0;
  place = strtoul(argv[4], NULL, 10);
  is_one = strcmp(argv[5], "one") == 0;
  int program = 6;
  if (strcmp(argv[program], "--refuse") == 0 && argc > 8) {
    if (strcmp(argv[program + 1], "process_vm_readv") != 0) return 2;
    refused = SYS_process_vm_readv;
    program += 2;
  }
  if (kind == NULL) {
    fprintf(stderr, "short_calls: no such call: %s\n", argv[3]);
    return 2;
  }
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    raise(SIGSTOP);
    execv(argv[program], argv + program);
    _exit(98);
  }
  int status = 0;
  if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) fail("the child did not stop");
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, child, NULL, (void*)options) != 0) fail("PTRACE_SEIZE");
  kill(child, SIGCONT);
  return trace(child);
}
