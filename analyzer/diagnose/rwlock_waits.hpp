// Finds a thread that waits to read a rwlock behind a waiting writer. The writer waits for the threads that hold the
// lock for reading.
#pragma once

#include <algorithm>

#include "model/model.hpp"

namespace forksight::rwlocks {

// Returns a thread that waits to read and lets `writer` go first, while `writer` waits until the present readers
// unlock. Null if there is no such thread.
inline const model::Wait* find_reader_behind(const model::Process& process, const model::Wait& writer) {
  const auto reader = std::ranges::find_if(process.waits, [&](const model::Wait& one) {
    return one.is_stuck && one.use == model::FutexUse::kRwlockRead && one.object == writer.object && one.owner == 0 &&
           one.readers > 0;
  });
  return reader == process.waits.end() ? nullptr : &*reader;
}

}  // namespace forksight::rwlocks
