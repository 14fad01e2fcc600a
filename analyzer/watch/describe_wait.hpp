// A sample of a thread, with what was looked up of its wait, as the model's words have it.
#pragma once

#include "model/model.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// `facts` may be null.
model::Wait describe_wait(const proc::ThreadSample& thread, const WaitFacts* facts);

}  // namespace forksight::watch
