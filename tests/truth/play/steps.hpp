// Takes the steps of a scenario. Most steps make one call of libc, as a program would make it.
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

// The scenario that this process plays. It lies in private memory, so a fork copies it.
extern Play* g_play;

// Where the calling thread is in the scenario. In a child of a fork, the copy of the thread gets another slot.
struct Here {
  int slot = -1;
  int next = 0;   // the index from which the search for the next step of the thread begins
  int step = -1;  // the step that the thread is in, or -1
  bool is_first_of_process = false;
};
extern thread_local Here t_here;

// Does the step. Steps that end the thread or the process do not return.
void perform(int index);

// Registers the calling thread under its slot. `step` is the step that the thread is already in, or -1.
void enter(int slot, int process, int step = -1);

// Takes the remaining steps of the calling thread. In the first thread of a process this function does not return,
// because it calls exit(0) after the last step.
void play_thread();

// Loads libgomp only if the scenario needs it, because a verdict may depend on a loaded OpenMP runtime.
void load_openmp(const Scenario& scenario);

}  // namespace truth
