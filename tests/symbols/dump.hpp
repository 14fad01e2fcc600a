// Reads what a fixture recorded, and finds the marked lines of its sources.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "symbols/symbols.hpp"

namespace forksight::symbols {

struct RecordedStack {
  StackSample sample;
  std::vector<std::byte> bytes;
};

struct Dump {
  std::string program;
  std::vector<Module> modules;
  std::map<std::string, RecordedStack> stacks;
  std::map<std::string, std::uint64_t> data;
  std::map<std::string, std::uint64_t> code;

  StackSample sample(const std::string& label) const;
};

// The names of all fixtures except the stripped one.
std::vector<std::string> fixtures_with_debug_information();

// Runs a program of the fixture, "scenes" or "locks", and reads what it wrote. Throws std::runtime_error if that fails,
// or if the program recorded nothing.
Dump run_fixture(const std::string& name, const std::string& program = "scenes");

// The place of the comment "// MARK: name" in "scenes.cpp", "library.cpp" or "locks.cpp". find_mark() throws
// std::runtime_error if no line ends with this comment.
struct Mark {
  std::string file;  // absolute
  int line = 0;
};
Mark find_mark(const std::string& name);

// "function file:line" for each frame, for messages.
std::string describe(const model::Stack& stack);

}  // namespace forksight::symbols
