#include "dump.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace forksight::symbols {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void run(const std::string& program, const std::string& argument) {
  std::string program_copy = program;
  std::string argument_copy = argument;
  char* arguments[] = {program_copy.data(), argument_copy.data(), nullptr};
  char* environment[] = {nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment) != 0) {
    throw std::runtime_error("cannot start " + program);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(program + " failed");
  }
}

void read_line(const std::string& line, Dump& dump) {
  std::istringstream fields(line);
  std::string kind;
  fields >> kind >> std::hex;
  if (kind == "module") {
    Module module;
    module.owner = files::kCaller;
    std::string build_id;
    fields >> module.bias >> module.start >> module.end >> build_id;
    std::getline(fields >> std::ws, module.path);
    if (build_id != "-") {
      for (const std::byte byte : from_hex(build_id)) module.build_id.push_back(std::to_integer<std::uint8_t>(byte));
    }
    dump.modules.push_back(std::move(module));
  } else if (kind == "stack") {
    std::string label;
    std::string bytes;
    RecordedStack stack;
    fields >> label >> stack.sample.pc >> stack.sample.sp >> stack.sample.fp >> stack.sample.frozen >>
        stack.sample.cut >> bytes;
    stack.bytes = from_hex(bytes);
    dump.stacks[label] = std::move(stack);
  } else {
    std::string label;
    std::uint64_t address = 0;
    fields >> label >> address;
    (kind == "data" ? dump.data : dump.code)[label] = address;
  }
}

}  // namespace

StackSample Dump::sample(const std::string& label) const {
  const auto found = stacks.find(label);
  if (found == stacks.end()) throw std::runtime_error("no stack " + label);
  StackSample sample = found->second.sample;
  sample.memory = found->second.bytes;
  return sample;
}

std::vector<std::string> fixtures_with_debug_information() {
  std::vector<std::string> names;
  std::istringstream list(SYMBOLS_FIXTURE_NAMES);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

Dump run_fixture(const std::string& name, const std::string& program) {
  Dump dump;
  dump.program = std::string(SYMBOLS_FIXTURES) + "/" + name + "/symbols_" + program + "_" + name;
  std::string path = "/tmp/forksight-symbols-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) throw std::runtime_error("no temporary file");
  close(fd);
  run(dump.program, path);
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) read_line(line, dump);
  unlink(path.c_str());
  if (dump.modules.empty() || dump.stacks.empty()) throw std::runtime_error(dump.program + " recorded nothing");
  return dump;
}

Mark find_mark(const std::string& name) {
  for (const char* file : {"scenes.cpp", "library.cpp", "locks.cpp"}) {
    const std::string path = std::string(SYMBOLS_SOURCES) + "/" + file;
    std::ifstream in(path);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::string mark = "// MARK: " + name;
      if (line.size() >= mark.size() && line.compare(line.size() - mark.size(), mark.size(), mark) == 0) {
        return {path, number};
      }
    }
  }
  throw std::runtime_error("no line is marked " + name);
}

std::string describe(const model::Stack& stack) {
  std::ostringstream text;
  for (const model::Frame& frame : stack.frames) {
    text << "  " << (frame.function.empty() ? "?" : frame.function) << " " << frame.file << ":" << frame.line << " "
         << frame.module << "+0x" << std::hex << frame.offset << std::dec << (frame.inlined ? " inlined" : "")
         << (frame.approximate ? " approximate" : "") << "\n";
  }
  text << (stack.cut ? "  (cut)\n" : "");
  return text.str();
}

}  // namespace forksight::symbols
