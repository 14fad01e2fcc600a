// Recognises waits for locks of Java. HotSpot keeps these locks in structures of its own.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight::inspect {

// Returns a sentence for each process in which threads wait to enter `synchronized` code. Only the JVM knows which
// thread is inside of this code. The sentence names the command that asks the JVM for this thread.
std::vector<std::string> tell_java_locks(const model::Model& model);

}  // namespace forksight::inspect
