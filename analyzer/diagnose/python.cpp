#include "diagnose/python.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "diagnose/words.hpp"

namespace forksight::python {

namespace {

const model::Stack* find(const model::Model& model, std::optional<model::PythonId> id, std::uint64_t pointer) {
  if (!id || pointer == 0) return nullptr;
  const auto& threads = model.python[*id];
  const auto found = std::ranges::find(threads, pointer, &model::PythonThread::pointer);
  return found == threads.end() ? nullptr : &found->stack;
}

// Functions of the standard library whose name occurs in only one class of their module. The interpreter gives only the
// name of the function. This table adds the class.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kClasses{{
    {"queue.put", "queue.Queue.put"},
    {"queue.get", "queue.Queue.get"},
    {"queue.join", "queue.Queue.join"},
    {"queue.task_done", "queue.Queue.task_done"},
    {"concurrent.futures._base.result", "concurrent.futures.Future.result"},
    {"concurrent.futures._base.exception", "concurrent.futures.Future.exception"},
    {"concurrent.futures.thread.submit", "ThreadPoolExecutor.submit"},
    {"concurrent.futures.thread.shutdown", "ThreadPoolExecutor.shutdown"},
    {"concurrent.futures.process.submit", "ProcessPoolExecutor.submit"},
    {"multiprocessing.queues.join_thread", "multiprocessing.Queue.join_thread"},
    {"multiprocessing.process.join", "multiprocessing.Process.join"},
    {"multiprocessing.pool.join", "multiprocessing.Pool.join"},
    {"importlib._bootstrap._find_and_load", "import"},
    {"importlib._bootstrap._lock_unlock_module", "import"},
}};

// Returns the name of the module in a file: "concurrent.futures.thread" for the file
// "/usr/lib/python3.11/concurrent/futures/thread.py", "importlib._bootstrap" for "<frozen importlib._bootstrap>".
std::string module_name(std::string_view file) {
  constexpr std::string_view kFrozen = "<frozen ";
  if (file.starts_with(kFrozen)) return std::string(file.substr(kFrozen.size(), file.size() - kFrozen.size() - 1));
  const std::size_t folder = file.find("/lib/python3");
  const std::size_t start = folder == std::string_view::npos ? folder : file.find('/', folder + 5);
  if (start == std::string_view::npos) return std::string(words::base_name(file));
  std::string name(file.substr(start + 1));
  for (const std::string_view end : {".py", "/__init__"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

const model::Stack* find_at_fork(const model::Model& model, const model::Fork& fork, const model::Thread& thread) {
  return find(model, fork.python, thread.pointer);
}

const model::Stack* find_at_hang(const model::Model& model, const model::Process& process, std::uint64_t pointer) {
  return find(model, process.python, pointer);
}

std::string operation(const model::Stack& stack) {
  const auto& frames = stack.frames;
  const auto [user, last] = words::find_user_part(stack);
  const std::size_t end = user == last ? frames.size() : user;
  for (std::size_t i = end; i-- > 0;) {
    if (!frames[i].python) break;
    const std::string name = fmt::format("{}.{}", module_name(frames[i].file), frames[i].function);
    const auto known = std::ranges::find(kClasses, name, [](const auto& entry) { return entry.first; });
    return known == kClasses.end() ? name : std::string(known->second);
  }
  return {};
}

std::string place(const model::Stack& stack) {
  const model::Frame* frame = words::find_user_frame(stack);
  if (frame == nullptr) {
    const auto first = std::ranges::find_if(stack.frames, [](const auto& each) { return each.python; });
    if (first == stack.frames.end()) return {};
    frame = &*first;
  }
  if (!frame->python) return words::place_with_function(stack);
  const std::string where = fmt::format("{}:{}, {}", words::base_name(frame->file), frame->line, frame->function);
  // If the place is inside of a package, the result begins with the line of the program itself that led to this place.
  const model::Frame& line = stack.frames[words::find_user_line(stack)];
  const bool is_led_to = &line != frame && words::whose(*frame) == words::Whose::kLibrary;
  return is_led_to ? fmt::format("{}:{}, {}", words::base_name(line.file), line.line, where) : where;
}

std::string process(const Evidence& evidence, model::ProcessId id) {
  const model::Process& process = evidence.process(id);
  std::string name = evidence.name(id);
  if (process.cmdline.empty()) return name;
  name += fmt::format(" ({}", words::base_name(process.cmdline.front()));
  for (std::size_t i = 1; i < process.cmdline.size(); ++i) {
    const std::string& word = process.cmdline[i];
    const bool names_module = word == "-m" && i + 1 < process.cmdline.size();
    if (word.starts_with('-') && word != "-c" && !names_module) continue;
    name += names_module ? " -m " + process.cmdline[i + 1] : fmt::format(" {}", words::base_name(word));
    break;
  }
  return name + ")";
}

std::string start_function(const model::Stack& stack) {
  const auto [first, last] = words::find_user_part(stack);
  return first == last ? std::string() : stack.frames[last - 1].function;
}

void add_fixes(Finding& finding) {
  const bool is_tested = finding.rule == "python-lock-orphaned";
  finding.fixes.push_back(
      {"Start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\": they begin without the "
       "parent's threads and locks.",
       is_tested});
  finding.fixes.push_back({"Or fork before the first thread is started.", is_tested});
}

}  // namespace forksight::python
