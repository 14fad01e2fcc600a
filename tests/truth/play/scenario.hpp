// The contents of a scenario file: the objects, and one list of the steps of all threads. tests/truth/README.md has the
// grammar.
#pragma once

#include <string>
#include <vector>

namespace truth {

enum class ObjectKind {
  kMutex,
  kRwlock,
  kSemaphore,
  kCondition,
  kBarrier,
  kWord,
  kGuard,
  kOnce,
  kFuture,
  kPipe,
  kFifo,
  kSocket,
  kChannel,
  kEventfd,
  kTimerfd,
  kFile
};

struct ObjectSpec {
  ObjectKind kind;
  std::string name;
  std::vector<std::string> attributes;
  bool shared = false;  // in memory that a fork does not copy: parent and child share it
  int number = 0;       // the number in the object's line: a count or a value
  std::string at = {};  // the object whose memory `make` gives to this one; empty: none

  bool has(const char* attribute) const;
};

struct Step {
  int thread = 0;  // index into Scenario::threads
  bool begins = false;
  std::string operation;
  std::vector<std::string> arguments;
};

struct Scenario {
  std::vector<ObjectSpec> objects;
  std::vector<std::string> threads;  // "main" is the first
  std::vector<Step> steps;
  int forced = 0;  // the steps before this index run in the order of the file

  int thread_of(const std::string& name) const;
  int object_of(const std::string& name) const;
};

// Ends the process with a message if the file cannot be read.
Scenario read_scenario(const char* path);

[[noreturn]] void fail(const std::string& message);

}  // namespace truth
