#include "diagnose/fingerprint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/words.hpp"

namespace forksight {

namespace {

class Fnv1a {
 public:
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(std::uint8_t{0});
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint8_t byte) {
    value_ ^= byte;
    value_ *= 0x100000001b3;
  }
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// The loader names a library by its soname, and the kernel names the library by its file name. The two names agree only
// in the part before ".so".
std::string_view without_version(std::string_view path) {
  const std::string_view name = words::base_name(path);
  const std::size_t end = name.find(".so");
  return end == std::string_view::npos ? name : name.substr(0, end);
}

// If the file name of a library differs from its soname, frames of this library may have no function names. How many
// frames lack names depends on the kind of evidence. So if any frame has a name, the frames without names are left out.
void add_stack(Fnv1a& hash, const model::Stack& stack) {
  const std::vector<const model::Frame*> frames = words::find_user_frames(stack);
  const auto is_named = [](const model::Frame* frame) { return !frame->function.empty(); };
  const bool has_names = std::ranges::any_of(frames, is_named);
  for (const model::Frame* const frame : frames) {
    if (has_names && !is_named(frame)) continue;
    hash.add(has_names ? std::string_view(frame->function) : without_version(frame->module));
    if (frame->python) hash.add(words::base_name(frame->file));
  }
  hash.add("|");
}

// Not every kind of evidence shows which lock of libc is meant, or which code made a C++ thread. So the hash leaves out
// a culprit whose library is libc or libstdc++.
bool is_runtime(std::string_view library) {
  return library == "libc" || library.starts_with("libc-2") || library == "libstdc++";
}

// Returns the part of the name that is the same in every run: "cache_mu" for "cache_mu (mutex)", and "" for "the mutex
// at 0x55d0c0". Returns "" for a pool, because its name contains a count of threads.
std::string_view stable_name(const Culprit& culprit) {
  if (culprit.kind != CulpritKind::kLock || culprit.library.empty()) return {};
  const std::string_view name = culprit.name;
  return name.substr(0, name.find(" ("));
}

// Returns the script that an interpreter runs: the name of the script, or its text if that was given on the command
// line. Returns "" for a process that is no interpreter.
std::string_view script_of(const model::Process& process) {
  constexpr std::string_view kInterpreters[] = {"node", "perl", "php", "python", "ruby"};
  const std::string_view program = words::base_name(process.exe);
  const auto is_it = [&](std::string_view name) { return program.starts_with(name); };
  if (std::ranges::none_of(kInterpreters, is_it)) return {};
  for (std::size_t i = 1; i < process.cmdline.size(); ++i) {
    const std::string_view argument = process.cmdline[i];
    const bool has_text = (argument == "-c" || argument == "-e") && i + 1 < process.cmdline.size();
    if (has_text) return process.cmdline[i + 1];
    if (!argument.starts_with('-')) return words::base_name(argument);
  }
  return {};
}

}  // namespace

std::string fingerprint(const model::Model& model, const Finding& finding) {
  const model::Process& process = model.processes[finding.process];
  const std::string_view program = words::base_name(process.exe);
  const std::string_view library = without_version(finding.culprit.library);
  Fnv1a hash;
  hash.add(finding.rule);
  hash.add(program);
  hash.add(script_of(process));
  const bool is_known_to_all = !is_runtime(library);
  hash.add(is_known_to_all && library != without_version(program) ? library : std::string_view());
  hash.add(is_known_to_all ? stable_name(finding.culprit) : std::string_view());
  add_stack(hash, finding.stack);
  // A finding that is not about a wait is a prediction. The code recognises a prediction by its harm, which is only
  // possible. In a core this test does not work: a finding from a core is always about a wait, even if its harm is only
  // possible.
  const bool is_of_wait = finding.harm != Certainty::kPossible || process.is_core;
  if (!is_of_wait || finding.outcome == Outcome::kCorruption) add_stack(hash, finding.culprit.stack);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace forksight
