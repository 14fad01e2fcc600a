// Turns a sample of a thread, and what was looked up about its wait, into the model's form.
#pragma once

#include "model/model.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// `facts`: what was looked up about the wait. It is null if nothing was looked up.
model::Wait describe_wait(const proc::ThreadSample& thread, const WaitFacts* facts);

}  // namespace forksight::watch
