#include "process_steps.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "objects.hpp"
#include "steps.hpp"

namespace truth {
namespace {

struct Handler {
  const Step* step = nullptr;  // "handle SIGNAL ACTION [OBJECT]"
};

Handler g_handlers[kSignals];
pthread_t g_threads[kMaxThreads];

Control& control() { return *g_play->control; }
int my_process(int slot) { return control().slots[slot].process.load(); }

int signal_of(const std::string& name) {
  static const auto* const numbers =
      new std::map<std::string, int>{{"usr1", SIGUSR1}, {"usr2", SIGUSR2}, {"term", SIGTERM}, {"alrm", SIGALRM}};
  return numbers->at(name);
}

// The slot of the first thread of this process. Signal handlers use it, because a handler may run in any thread.
int g_process_slot = 0;

bool write_one(const ObjectSpec& spec, int index) {
  const uint64_t one = 1;
  if (spec.kind == ObjectKind::kEventfd) return write(read_end(index), &one, sizeof one) == sizeof one;
  return write(write_end(index), "x", 1) == 1;
}

void on_signal(int number) {
  const int saved = errno;
  const Step& step = *g_handlers[number].step;
  const std::string& action = step.arguments.at(1);
  if (action != "nop") {
    const int index = g_play->scenario.object_of(step.arguments.at(2));
    if (action == "post") sem_post(&object_at(g_play->scenario, index).semaphore);
    if (action == "set") {
      Object& object = object_at(g_play->scenario, index);
      const bool shared = g_play->scenario.objects[static_cast<size_t>(index)].shared;
      object.word.store(1);
      raw_call(SYS_futex, reinterpret_cast<long>(&object.word), shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX);
    }
    if (action == "write" && !write_one(g_play->scenario.objects[static_cast<size_t>(index)], index)) _exit(98);
  }
  control().slots[g_process_slot].handled.fetch_add(1);
  errno = saved;
}

int handle(int slot, const Step& step) {
  const int number = signal_of(step.arguments.at(0));
  g_handlers[number].step = &step;
  control().slots[my_process(slot)].handlers.fetch_or(1 << number);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, nullptr) == 0 ? 0 : errno;
}

int send_signal(const Step& step) {
  const Slot& target = control().slots[g_play->scenario.thread_of(step.arguments.at(0))];
  const int number = signal_of(step.arguments.at(1));
  const int32_t handled = target.handled.load();
  if (kill(target.pid.load(), number) != 0) return errno;
  if ((target.handlers.load() & 1 << number) == 0) {
    await_process_state(target.pid.load(), 'Z');
  } else {
    while (target.handled.load() == handled) raw_nap_ms(1);
  }
  return 0;
}

int stop_process(const Step& step) {
  const Slot& target = control().slots[g_play->scenario.thread_of(step.arguments.at(0))];
  if (kill(target.pid.load(), SIGSTOP) != 0) return errno;
  await_process_state(target.pid.load(), 'T');
  return 0;
}

void* thread_main(void* slot) {
  const int index = static_cast<int>(reinterpret_cast<intptr_t>(slot));
  enter(index, g_process_slot);
  play_thread();
  return nullptr;
}

int create(const Step& step) {
  const int other = g_play->scenario.thread_of(step.arguments.at(0));
  const int error =
      pthread_create(&g_threads[other], nullptr, thread_main, reinterpret_cast<void*>(static_cast<intptr_t>(other)));
  if (error == 0) await_birth(other);
  return error;
}

int wait_for_child(const Step& step) {
  int status = 0;
  const pid_t child = control().slots[g_play->scenario.thread_of(step.arguments.at(0))].pid.load();
  while (waitpid(child, &status, 0) != child) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int set_timer() {
  itimerval far{};
  far.it_value.tv_sec = kFarSeconds;
  return setitimer(ITIMER_REAL, &far, nullptr) == 0 ? 0 : errno;
}

int nap() {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += kFarSeconds;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
  return 0;
}

[[noreturn]] void end_thread() {
  control().slots[t_here.slot].phase.store(kEnded);
  pthread_exit(nullptr);
}

int status_in(const Step& step) { return step.arguments.empty() ? 0 : std::stoi(step.arguments[0]); }

}  // namespace

void enter(int slot, int process, int step) {
  Slot& mine = control().slots[slot];
  mine.pid.store(static_cast<int32_t>(raw_call(SYS_getpid)));
  mine.tid.store(static_cast<int32_t>(raw_call(SYS_gettid)));
  mine.process.store(process);
  g_threads[slot] = pthread_self();
  mine.step.store(step);
  g_process_slot = process;
  t_here = Here{slot, 0, step, slot == process};
  mine.phase.store(step < 0 ? kBefore : kInStep);
}

void await_birth(int slot) {
  while (control().slots[slot].phase.load() == kUnborn) raw_nap_ms(1);
}

void await_thread_end(const Slot& slot) {
  char path[64];
  const int32_t pid = slot.pid.load(), tid = slot.tid.load();
  if (pid == tid) {
    await_first_thread_end(pid);
    return;
  }
  snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
  while (raw_call(SYS_access, reinterpret_cast<long>(path), F_OK) == 0) raw_nap_ms(1);
}

void leave_list() {
  await_turn(control(), static_cast<uint32_t>(g_play->scenario.forced));  // a thread ends only after all forced steps
  control().slots[t_here.slot].phase.store(kEnded);
  if (t_here.is_first_of_process) exit(0);
}

bool perform_process_step(int index, int* result) {
  const Step& step = g_play->scenario.steps[static_cast<size_t>(index)];
  const std::string& operation = step.operation;
  if (operation == "create")
    *result = create(step);
  else if (operation == "join")
    *result = pthread_join(g_threads[g_play->scenario.thread_of(step.arguments.at(0))], nullptr);
  else if (operation == "wait")
    *result = wait_for_child(step);
  else if (operation == "handle")
    *result = handle(t_here.slot, step);
  else if (operation == "kill")
    *result = send_signal(step);
  else if (operation == "stop")
    *result = stop_process(step);
  else if (operation == "pause")
    *result = pause() == -1 ? 0 : 1;
  else if (operation == "alarm")
    *result = static_cast<int>(alarm(kFarSeconds));
  else if (operation == "itimer")
    *result = set_timer();
  else if (operation == "nap")
    *result = nap();
  else if (operation == "exit")
    exit(status_in(step));
  else if (operation == "_exit")
    _exit(status_in(step));
  else if (operation == "end")
    end_thread();
  else
    return false;
  return true;
}

}  // namespace truth
