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

// Does the step. Steps that end the thread or the process do not return.
void perform(int slot, int index);

// Registers the calling thread under its slot.
void enter(int slot, int process);

// All steps of one thread, in their order.
void play_thread(int slot, int first_step);

}  // namespace truth
