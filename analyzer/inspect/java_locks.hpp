// Waits for locks of Java, which HotSpot keeps in its own structures.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight::inspect {

// Returns a sentence for each process in which threads wait to enter `synchronized` code. Only the JVM knows which
// thread is inside. The sentence names the command that asks the JVM for this thread.
std::vector<std::string> tell_java_locks(const model::Model& model);

}  // namespace forksight::inspect
