// Finds readers of a rwlock that let a waiting writer go first, while that writer waits for a reader.
#pragma once

#include <algorithm>

#include "model/model.hpp"

namespace forksight::rwlocks {

// Returns a thread that waits to read and lets `writer` go first, while `writer` waits until the readers leave. Null if
// there is none.
inline const model::Wait* find_reader_behind(const model::Process& process, const model::Wait& writer) {
  const auto reader = std::ranges::find_if(process.waits, [&](const model::Wait& one) {
    return one.is_stuck && one.use == model::FutexUse::kRwlockRead && one.object == writer.object && one.owner == 0 &&
           one.readers > 0;
  });
  return reader == process.waits.end() ? nullptr : &*reader;
}

}  // namespace forksight::rwlocks
