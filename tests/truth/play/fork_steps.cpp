#include "fork_steps.hpp"

#include <pthread.h>
#include <pty.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "objects.hpp"
#include "process_steps.hpp"
#include "steps.hpp"

namespace truth {
namespace {

constexpr int kMaxHandlers = 4;

const Step* g_handlers[kMaxHandlers];
int g_handler_count = 0;

// The fork that this thread is making: the child's slot, the step, and the signals that the parent process handles.
struct Making {
  int slot = -1;
  int step = -1;
  int32_t signals = 0;
};
thread_local Making t_making;

Control& control() { return *g_play->control; }

// Registers the first thread of the child under its own slot. The child handlers and the code after fork() call this
// function. Only the first call in a child does something.
void enter_child() {
  if (t_here.slot == t_making.slot) return;
  control().slots[t_making.slot].handlers.store(t_making.signals);
  enter(t_making.slot, t_making.slot, t_making.step);
}

bool is_kind(int handler, const char* kind) { return g_handlers[handler]->arguments.at(0) == kind; }

int object_of(int handler) { return g_play->scenario.object_of(g_handlers[handler]->arguments.at(1)); }

pthread_mutex_t* mutex_of(int handler) { return &object_at(g_play->scenario, object_of(handler)).mutex; }

void prepare(int handler) {
  if (!is_kind(handler, "child")) pthread_mutex_lock(mutex_of(handler));
}

void after_in_parent(int handler) {
  if (!is_kind(handler, "child")) pthread_mutex_unlock(mutex_of(handler));
}

void after_in_child(int handler) {
  enter_child();
  if (is_kind(handler, "renew")) {
    init_object(g_play->scenario.objects[static_cast<size_t>(object_of(handler))], object_of(handler));
  } else if (is_kind(handler, "keep") || pthread_mutex_lock(mutex_of(handler)) == 0) {
    pthread_mutex_unlock(mutex_of(handler));
  }
}

template <int N>
int register_handlers() {
  return pthread_atfork([] { prepare(N); }, [] { after_in_parent(N); }, [] { after_in_child(N); });
}

int add_handlers(const Step& step) {
  static constexpr std::array<int (*)(), kMaxHandlers> kRegister = {register_handlers<0>, register_handlers<1>,
                                                                    register_handlers<2>, register_handlers<3>};
  if (g_handler_count == kMaxHandlers) fail("too many atfork handlers");
  g_handlers[g_handler_count] = &step;
  return kRegister[static_cast<size_t>(g_handler_count++)]();
}

std::string way_of(const Step& step) { return step.arguments.size() > 1 ? step.arguments[1] : "fork"; }

// Returns 0 in the child, as fork() does.
pid_t make_copy(const std::string& way) {
  int terminal = -1;
  if (way == "_Fork") return _Fork();
  if (way == "forkpty") return forkpty(&terminal, nullptr, nullptr, nullptr);
  if (way == "daemon") return daemon(1, 1);
  return fork();
}

// The arguments with which this program starts again for a slot. `words` points into the strings of `numbers`.
struct Command {
  std::array<std::string, 3> numbers;
  std::array<char*, 7> words{};

  Command(int slot, int process, int step)
      : numbers{std::to_string(slot), std::to_string(process), std::to_string(step)} {
    words = {const_cast<char*>("truth_play"),
             const_cast<char*>(g_play->scenario_path),
             const_cast<char*>(g_play->control_path),
             numbers[0].data(),
             numbers[1].data(),
             numbers[2].data(),
             nullptr};
  }
};

constexpr const char* kThisProgram = "/proc/self/exe";

int make_program(int slot, const std::string& way) {
  Command command(slot, slot, -1);
  pid_t child = 0;
  if (way == "spawn") {
    const int error = posix_spawn(&child, kThisProgram, nullptr, nullptr, command.words.data(), environ);
    if (error != 0) return error;
  } else {
    child = vfork();
    if (child == 0) {
      execv(kThisProgram, command.words.data());
      _exit(97);
    }
    if (child < 0) return errno;
  }
  await_birth(slot);
  return 0;
}

int fork_child(int index, const Step& step) {
  const std::string way = way_of(step);
  const int other = g_play->scenario.thread_of(step.arguments.at(0));
  if (way == "vfork" || way == "spawn") return make_program(other, way);
  const int process = control().slots[t_here.slot].process.load();
  t_making = {other, index, control().slots[process].handlers.load()};
  const pid_t child = make_copy(way);
  if (child < 0) return errno;
  if (child == 0) {
    enter_child();
    // The parent marks the step as done. For a daemon the child marks the step, because the parent has ended.
    if (way != "daemon") t_here.step = -1;
    Slot& mine = control().slots[other];
    mine.step.store(-1);
    mine.phase.store(kBefore);
    return 0;
  }
  await_birth(other);
  await_asleep(control().slots[other], index);  // now the child handlers have returned, or one of them waits
  return 0;
}

int exec_again(int index) {
  const int process = control().slots[t_here.slot].process.load();
  const Command command(t_here.slot, process, index);
  control().slots[process].handlers.store(0);
  execv(kThisProgram, command.words.data());
  return errno;
}

}  // namespace

bool is_daemon(const Step& step) { return step.operation == "fork" && way_of(step) == "daemon"; }

bool perform_fork_step(int index, int* result) {
  const Step& step = g_play->scenario.steps[static_cast<size_t>(index)];
  if (step.operation == "fork")
    *result = fork_child(index, step);
  else if (step.operation == "exec")
    *result = exec_again(index);
  else if (step.operation == "atfork")
    *result = add_handlers(step);
  else
    return false;
  return true;
}

}  // namespace truth
