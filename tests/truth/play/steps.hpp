// What each step does: one call of libc, as a program would make it.
#pragma once

#include "control.hpp"
#include "scenario.hpp"

namespace truth {

struct Play {
  Scenario scenario;
  Control* control = nullptr;
  const char* scenario_path = nullptr;
  const char* control_path = nullptr;
};

// The play of this process. Its memory is copied by a fork as everything else is.
extern Play* g_play;

// Where the calling thread is in its scenario. A fork makes the copy of the thread another one.
struct Here {
  int slot = -1;
  int next = 0;   // the step from which its next one is looked for
  int step = -1;  // that it is in
  bool is_first_of_process = false;
};
extern thread_local Here t_here;

// Does the step. Steps that end the thread or the process do not return.
void perform(int index);

// Registers the calling thread under its slot, with the step that it is in already, or -1.
void enter(int slot, int process, int step = -1);

// The rest of the calling thread's steps. For the first thread of a process it does not return.
void play_thread();

// Only where it is needed: an OpenMP runtime is something that a verdict may depend on.
void load_openmp(const Scenario& scenario);

}  // namespace truth
