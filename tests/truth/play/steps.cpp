#include "steps.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <functional>
#include <map>
#include <vector>

#include "file_steps.hpp"
#include "fork_steps.hpp"
#include "objects.hpp"
#include "process_steps.hpp"

namespace truth {

Play* g_play = nullptr;
thread_local Here t_here;

namespace {

void run_routine();

Object& named(const Step& step, size_t argument = 0) {
  return object_at(g_play->scenario, g_play->scenario.object_of(step.arguments.at(argument)));
}

int lock_mutex(const Step& step) {
  pthread_mutex_t* mutex = &named(step).mutex;
  const int error = pthread_mutex_lock(mutex);
  if (error == EOWNERDEAD) pthread_mutex_consistent(mutex);
  return error;
}

int wait_semaphore(const Step& step) {
  while (sem_wait(&named(step).semaphore) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int arrive(const Step& step) {
  const int answer = pthread_barrier_wait(&named(step).barrier);
  return answer == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : answer;
}

bool is_shared(const Step& step) {
  return g_play->scenario.objects[static_cast<size_t>(g_play->scenario.object_of(step.arguments.at(0)))].shared;
}

int wait_word(const Step& step) {
  std::atomic<int>& word = named(step).word;
  const int value = std::stoi(step.arguments.at(1));
  const int operation = is_shared(step) ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
  while (word.load() == value) syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
  return 0;
}

int set_word(const Step& step) {
  std::atomic<int>& word = named(step).word;
  word.store(std::stoi(step.arguments.at(1)));
  syscall(SYS_futex, &word, is_shared(step) ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  return 0;
}

int begin_guard(const Step& step) {
  abi::__cxa_guard_acquire(&named(step).guard);  // the result is not needed: the scenario says which thread initialises
  return 0;
}

int end_guard(const Step& step) {
  abi::__cxa_guard_release(&named(step).guard);
  return 0;
}

int await_future(const Step& step) {
  named(step).promise->future.wait();
  return 0;
}

int fulfil(const Step& step) {
  named(step).promise->promise.set_value();
  return 0;
}

// The routine of pthread_once() takes the next steps of the thread, up to `oend`.
int call_once(const Step& step) { return pthread_once(&named(step).once, run_routine); }

using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
Parallel g_parallel = nullptr;

int in_parallel(const Step&) {
  g_parallel([](void*) {}, nullptr, 2, 0);
  return 0;
}

int destroy(const Step& step) {
  const int index = g_play->scenario.object_of(step.arguments.at(0));
  destroy_object(g_play->scenario.objects[static_cast<size_t>(index)], index);
  return 0;
}

int init_again(const Step& step) {
  const int index = g_play->scenario.object_of(step.arguments.at(0));
  init_object(g_play->scenario.objects[static_cast<size_t>(index)], index);
  return 0;
}

int say(const Step& step) {
  const std::string text = step.arguments.at(0) + "\n";
  return write(STDOUT_FILENO, text.data(), text.size()) < 0 ? errno : 0;
}

using Operation = int (*)(const Step& step);

const std::map<std::string, Operation>& memory_operations() {
  static const auto* const table = new std::map<std::string, Operation>{
      {"lock", lock_mutex},
      {"unlock", [](const Step& step) { return pthread_mutex_unlock(&named(step).mutex); }},
      {"rdlock", [](const Step& step) { return pthread_rwlock_rdlock(&named(step).rwlock); }},
      {"wrlock", [](const Step& step) { return pthread_rwlock_wrlock(&named(step).rwlock); }},
      {"rwunlock", [](const Step& step) { return pthread_rwlock_unlock(&named(step).rwlock); }},
      {"swait", wait_semaphore},
      {"post", [](const Step& step) { return sem_post(&named(step).semaphore); }},
      {"cwait", [](const Step& step) { return pthread_cond_wait(&named(step).condition, &named(step, 1).mutex); }},
      {"signal", [](const Step& step) { return pthread_cond_signal(&named(step).condition); }},
      {"broadcast", [](const Step& step) { return pthread_cond_broadcast(&named(step).condition); }},
      {"arrive", arrive},
      {"fwait", wait_word},
      {"fset", set_word},
      {"gbegin", begin_guard},
      {"gend", end_guard},
      {"await", await_future},
      {"fulfil", fulfil},
      {"init", init_again},
      {"make", init_again},
      {"destroy", destroy},
      {"drop", [](const Step&) { return 0; }},
      {"obegin", call_once},
      {"region", in_parallel},
      {"say", say},
      {"done", [](const Step&) { return 0; }},
  };
  return *table;
}

// Waits until the step at `index` has had its effect. If the step blocks its thread, that thread sleeps now. If the
// step ends a thread or a process, that thread or process is gone now.
void await_step_before(int index) {
  const Step& before = g_play->scenario.steps[static_cast<size_t>(index)];
  const Slot& slot = g_play->control->slots[before.thread];
  if (before.begins) await_asleep(slot, index);
  if (before.operation == "exit" || before.operation == "_exit") {
    await_process_state(g_play->control->slots[slot.process.load()].pid.load(), 'Z');
  }
  if (before.operation == "end") await_thread_end(slot);
  if (is_daemon(before)) await_process_state(g_play->control->slots[slot.process.load()].pid.load(), 'Z');
}

void await_my_turn(int index) {
  const int forced = g_play->scenario.forced;
  const int turn = index < forced ? index : forced;
  await_turn(*g_play->control, static_cast<uint32_t>(turn));
  if (turn > 0) await_step_before(turn - 1);
}

bool is_forced(int index) { return index < g_play->scenario.forced; }

bool publishes_before(const Step& step) {
  return step.begins || step.operation == "exit" || step.operation == "_exit" || step.operation == "end";
}

void publish_after(int index) {
  if (is_forced(index) && !publishes_before(g_play->scenario.steps[static_cast<size_t>(index)])) {
    publish_turn(*g_play->control, static_cast<uint32_t>(index) + 1);
  }
}

// Marks the current step of the calling thread as done. In a child of a fork the thread has no current step.
void finish_step() {
  if (t_here.step < 0) return;
  g_play->control->slots[t_here.slot].phase.store(kBefore);
  publish_after(t_here.step);
  t_here.step = -1;
}

int next_step() {
  const auto& steps = g_play->scenario.steps;
  for (int index = t_here.next; index < static_cast<int>(steps.size()); ++index) {
    if (steps[static_cast<size_t>(index)].thread == t_here.slot) return index;
  }
  return -1;
}

// Takes steps of the calling thread until its list ends (returns false) or a routine of pthread_once() ends (true).
bool play_on() {
  for (int index = next_step(); index >= 0; index = next_step()) {
    const Step& step = g_play->scenario.steps[static_cast<size_t>(index)];
    await_my_turn(index);
    Slot& mine = g_play->control->slots[t_here.slot];
    mine.step.store(index);
    mine.phase.store(kInStep);
    t_here.next = index + 1;
    t_here.step = index;
    if (is_forced(index) && publishes_before(step)) publish_turn(*g_play->control, static_cast<uint32_t>(index) + 1);
    if (step.operation == "oend") return true;
    perform(index);
    finish_step();
  }
  return false;
}

// The routine of pthread_once(). If the list of the thread ends inside the routine, the thread ends there.
void run_routine() {
  finish_step();
  if (play_on()) return;
  leave_list();
  pthread_exit(nullptr);
}

}  // namespace

void perform(int index) {
  const Step& step = g_play->scenario.steps[static_cast<size_t>(index)];
  int result = 0;
  const auto in_memory = memory_operations().find(step.operation);
  if (in_memory != memory_operations().end()) {
    result = in_memory->second(step);
  } else if (!perform_file_step(step, &result) && !perform_fork_step(index, &result) &&
             !perform_process_step(index, &result)) {
    fail("no operation " + step.operation);
  }
  g_play->control->slots[t_here.slot].result.store(result);
}

void play_thread() {
  if (play_on()) fail("oend outside of its routine");
  leave_list();
}

void load_openmp(const Scenario& scenario) {
  const bool is_used = std::any_of(scenario.steps.begin(), scenario.steps.end(),
                                   [](const Step& step) { return step.operation == "region"; });
  if (!is_used) return;
  setenv("GOMP_SPINCOUNT", "0", 1);  // a waiting worker sleeps instead of spinning, so it can be examined
  if (dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) fail("no libgomp.so.1");
  // A program that is linked with libgomp uses the same symbol version.
  g_parallel = reinterpret_cast<Parallel>(dlvsym(RTLD_DEFAULT, "GOMP_parallel", "GOMP_4.0"));
}

}  // namespace truth
