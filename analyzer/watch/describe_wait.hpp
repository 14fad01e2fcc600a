// Makes a model::Wait from a sample of a thread, and from the facts about the wait of this thread.
#pragma once

#include "model/model.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// `facts`: what was looked up about the wait. Null: nothing was looked up.
model::Wait describe_wait(const proc::ThreadSample& thread, const WaitFacts* facts);

}  // namespace forksight::watch
