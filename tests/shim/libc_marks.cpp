// Threads of this program call libc functions, and leave them by a return, an exception, cancellation, or longjmp. The
// program forks five times. Each child exits at once. libc_marks_test checks what the trace records about each fork.
//
//   fork 1: a thread is inside dl_iterate_phdr. Its callback has called localtime, which has returned.
//   fork 2: an exception has left dl_iterate_phdr.
//   fork 3: a thread was cancelled inside dl_iterate_phdr, and has ended.
//   fork 4: main itself is inside dl_iterate_phdr.
//   fork 5: longjmp has left dl_iterate_phdr. After that the thread has called localtime, which has returned.
#include <link.h>
#include <pthread.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

namespace {

int g_to_main[2];
int g_to_thread[2];
std::jmp_buf g_out;

void pass(const int (&pipe)[2]) {
  if (write(pipe[1], "", 1) != 1) std::abort();
}
void await(const int (&pipe)[2]) {
  char byte = 0;
  if (read(pipe[0], &byte, 1) != 1) std::abort();
}

using Callback = int(dl_phdr_info*, std::size_t, void*);

int linger(dl_phdr_info*, std::size_t, void*) {
  const std::time_t now = 0;
  errno = 4711;
  if (std::localtime(&now) == nullptr || errno != 4711) std::abort();
  pass(g_to_main);
  await(g_to_thread);
  return 42;
}
int fail(dl_phdr_info*, std::size_t, void*) { throw std::runtime_error("enough"); }
int sleep_for_ever(dl_phdr_info*, std::size_t, void*) {
  pass(g_to_main);
  for (;;) pause();
}
int jump(dl_phdr_info*, std::size_t, void*) { std::longjmp(g_out, 1); }

void fork_once() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::abort();
}

int fork_inside(dl_phdr_info*, std::size_t, void*) {
  fork_once();
  return 7;
}

void* thread_main(void*) {
  if (dl_iterate_phdr(linger, nullptr) != 42) std::abort();
  bool caught = false;
  try {
    dl_iterate_phdr(fail, nullptr);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  if (!caught) std::abort();
  pass(g_to_main);
  await(g_to_thread);
  return nullptr;
}

void* cancelled_main(void*) {
  dl_iterate_phdr(sleep_for_ever, nullptr);
  return nullptr;
}

void* jumping_main(void*) {
  if (setjmp(g_out) == 0) dl_iterate_phdr(jump, nullptr);
  const std::time_t now = 0;
  if (std::localtime(&now) == nullptr) std::abort();
  pass(g_to_main);
  await(g_to_thread);
  return nullptr;
}

}  // namespace

int main() {
  pthread_t thread;
  if (pipe(g_to_main) != 0 || pipe(g_to_thread) != 0) return 1;
  pthread_create(&thread, nullptr, thread_main, nullptr);
  await(g_to_main);
  fork_once();
  pass(g_to_thread);
  await(g_to_main);
  fork_once();
  pass(g_to_thread);
  pthread_join(thread, nullptr);

  pthread_create(&thread, nullptr, cancelled_main, nullptr);
  await(g_to_main);
  pthread_cancel(thread);
  void* result = nullptr;
  if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED) return 1;
  pthread_t idle;
  pthread_create(
      &idle, nullptr,
      [](void*) -> void* {
        await(g_to_thread);
        return nullptr;
      },
      nullptr);
  fork_once();
  // This fork must come before the longjmp, because the longjmp leaves the loader's lock taken.
  if (dl_iterate_phdr(fork_inside, nullptr) != 7) return 1;
  pass(g_to_thread);
  pthread_join(idle, nullptr);

  pthread_create(&thread, nullptr, jumping_main, nullptr);
  await(g_to_main);
  fork_once();
  pass(g_to_thread);
  pthread_join(thread, nullptr);
  _exit(0);
}
