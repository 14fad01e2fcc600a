#include "suite/agree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>

#include "diagnose/words.hpp"
#include "render/names.hpp"

namespace forksight::suite {
namespace {

using Lines = std::vector<std::string>;

// Replaces each word that contains a digit by a #. Numbers differ between runs, and so do names that consist of random
// letters and digits.
std::string without_numbers(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const auto is_of_word = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    std::size_t end = i;
    while (is_of_word(end)) ++end;
    const std::string word = text.substr(i, std::max<std::size_t>(end - i, 1));
    const bool has_digit = std::ranges::any_of(word, [](unsigned char one) { return std::isdigit(one) != 0; });
    plain += has_digit ? "#" : word;
    i += word.size();
  }
  return plain;
}

// Returns the file of a library, with links resolved. A finding of `run` has the name that the loader uses for the
// library. A finding of `why` has the name that the kernel uses.
std::string file_of(const std::string& library) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(library, error);
  return error ? library : file.string();
}

// True if the stack has a frame of the same function and file. The line may differ, because a program may get stuck at
// either of two places in a function.
bool has_frame(const model::Stack& stack, const model::Frame& frame) {
  return std::ranges::any_of(
      stack.frames, [&](const model::Frame& one) { return one.function == frame.function && one.file == frame.file; });
}

bool is_named(const model::Frame& frame) { return !frame.function.empty() && frame.line > 0; }

// True if the finding `run` may be about the same hang as the finding `why`. The rules need not be equal: `forksight
// run` saw what happened before the hang, so `run` may name a more precise cause. That cause must be at least as
// certain as the cause in `why`.
bool may_be_told_as(const Finding& why, const Finding& run) {
  return run.rule == why.rule || (run.fork && run.cause >= why.cause && run.harm >= why.harm);
}

class View {
 public:
  View(const Finding& run, const Finding& why) : run_(run), why_(why) {}

  Lines compare() {
    if (run_.harm < why_.harm) miss("how sure", render::name_of(why_.harm), render::name_of(run_.harm));
    text("the thread", why_.thread_name, run_.thread_name);
    if (run_.rule != why_.rule) return std::move(lines_);
    if (run_.fingerprint != why_.fingerprint) miss("the fingerprint", why_.fingerprint, run_.fingerprint);
    // Only the frames of the program itself are compared. The inner frames differ, because only `run` has the hooks of
    // the shim among them.
    const auto [first, last] = words::find_user_part(why_.stack);
    for (std::size_t i = first; i < last; ++i) {
      const model::Frame& frame = why_.stack.frames[i];
      if (!is_named(frame) || has_frame(run_.stack, frame)) continue;
      miss("a frame", fmt::format("{} ({}:{})", frame.function, frame.file, frame.line), "");
    }
    culprit();
    return std::move(lines_);
  }

 private:
  void miss(const char* what, const std::string& why, const std::string& run) {
    lines_.push_back(
        fmt::format("  {}: {}: why says {}, run says {}", why_.rule, what, why, run.empty() ? "nothing" : run));
  }
  void text(const char* what, const std::string& why, const std::string& run) {
    // The text of `run` may be longer. For example, only `run` can add "(1st of 2)", because only `run` saw all
    // registrations.
    if (!why.empty() && !without_numbers(run).starts_with(without_numbers(why))) miss(what, why, run);
  }

  void culprit() {
    const Culprit& why = why_.culprit;
    const Culprit& run = run_.culprit;
    // The name of a temporary file or semaphore differs between runs.
    if (why.kind == CulpritKind::kLock && why.name.find("semaphore sem.") == std::string::npos) {
      // " (heap)" is not compared: only `why` can add this word, because only `why` reads the memory.
      const std::string name = why.name.substr(0, why.name.find(" (heap)"));
      text("the culprit", name, run.name);
    }
    if (!why.library.empty() && why.kind == CulpritKind::kLock && file_of(why.library) != file_of(run.library))
      miss("its library", why.library, run.library);
    if (why.kind != CulpritKind::kLock) return;
    // If the stack shows where the holder is now, the stack is not compared, because only `why` has such a stack.
    if (why.stack.known() && !why.is_now && !run.stack.known())
      miss("its stack", why.stack.frames.front().function, "");
    if (!why.holder) return;
    const Holder none;
    const Holder& holder = run.holder ? *run.holder : none;
    if (why.holder->tid != 0 && holder.tid == 0) miss("its holder", std::to_string(why.holder->tid), "");
    text("its holder", why.holder->name, holder.name);
    text("where its holder started", why.holder->start_routine, holder.start_routine);
  }

  const Finding& run_;
  const Finding& why_;
  Lines lines_;
};

}  // namespace

Lines compare_views(const std::vector<Finding>& run, const std::vector<Finding>& why) {
  Lines lines;
  for (const Finding& told : why) {
    Lines best;
    bool is_told = false;
    for (const Finding& one : run) {
      if (!may_be_told_as(told, one)) continue;
      Lines its = View(one, told).compare();
      if (!is_told || its.size() < best.size()) best = std::move(its);
      is_told = true;
    }
    if (!is_told) best = {fmt::format("  {}: why says it, run does not: {}", told.rule, told.summary)};
    lines.insert(lines.end(), best.begin(), best.end());
  }
  return lines;
}

Lines compare_causes(const std::vector<Finding>& core, const std::vector<Finding>& why) {
  Lines lines;
  for (const Finding& one : core) {
    const auto is_same_rule = [&](const Finding& told) { return told.rule == one.rule; };
    const auto is_same = [&](const Finding& told) { return told.fingerprint == one.fingerprint; };
    if (std::ranges::none_of(why, is_same_rule) || std::ranges::any_of(why, is_same)) continue;
    const auto told = std::ranges::find_if(why, is_same_rule);
    lines.push_back(
        fmt::format("  {}: the fingerprint: why says {}, core says {}", one.rule, told->fingerprint, one.fingerprint));
  }
  return lines;
}

}  // namespace forksight::suite
