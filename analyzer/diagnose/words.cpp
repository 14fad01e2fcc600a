#include "diagnose/words.hpp"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace forksight::words {

namespace {

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool is_of_runtime(const model::Frame& frame) {
  if (frame.python) return is_python_library(frame);
  if (starts_with_any(base_name(frame.module), {"libc.so", "libc-", "libpthread", "libstdc++", "libc++", "libgomp",
                                                "libomp", "libiomp5", "ld-linux", "ld-2", "ld.so", "libforksight",
                                                "libcuda.so", "libcudart", "linux-vdso", "[vdso]"})) {
    return true;
  }
  // Frames of the interpreter's own C code do not show what the script does.
  if (starts_with_any(base_name(frame.module), {"python", "libpython"})) return true;
  // Rust's standard library is compiled into the program. Its frames have file names from the machine that built the
  // compiler.
  if (frame.file.starts_with("/rustc/")) return true;
  // Code from headers of the C++ library, such as std::lock_guard, is compiled into the program. But it is not the
  // user's code. The same is true of a libgomp that is linked statically.
  return starts_with_any(frame.function, {"std::", "__gnu_cxx::", "__gthread_", "void std::", "GOMP_", "gomp_"}) ||
         frame.file.find("/include/c++/") != std::string::npos;
}

bool is_of_user(const model::Frame& frame) { return whose(frame) != Whose::kRuntime; }

// True if the path is a shared library in a folder of the distribution's packages, of packages of pip or conda, or of
// CPython's own modules.
bool is_installed(std::string_view path) {
  if (base_name(path).find(".so") == std::string_view::npos) return false;
  return starts_with_any(path, {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"}) ||
         path.find("-packages/") != std::string_view::npos || path.find("/lib/python3") != std::string_view::npos;
}

// True for one of the extension modules of CPython's own library, such as _socket. Its frames say no more than the line
// of Python that called it.
bool is_of_python_itself(const model::Frame& frame) { return frame.module.find("/lib-dynload/") != std::string::npos; }

// True for a shell or make. Its own frames say only that it waits.
bool is_starter_of_programs(std::string_view path) {
  return std::ranges::binary_search(
      std::array<std::string_view, 9>{"bash", "busybox", "dash", "fish", "ksh", "make", "ninja", "sh", "zsh"},
      base_name(path));
}

bool is_of_library(const model::Frame& frame) {
  if (frame.python) return frame.file.find("-packages/") != std::string::npos;
  if (is_starter_of_programs(frame.module)) return true;
  return is_installed(frame.module) || model::find_owner_of_library(frame.module) != model::Owner::kUnknown;
}

// True if the frame is in the program's own code, and its source line is known.
bool is_own_line(const model::Frame& frame) {
  return whose(frame) == Whose::kUser && !frame.file.empty() && frame.line > 0;
}

// Returns "torch" for ".../site-packages/torch/nn/functional.py", "threading" for "/usr/lib/python3.11/threading.py".
std::string_view python_package(std::string_view file) {
  constexpr std::string_view kFrozen = "<frozen ";
  if (file.starts_with(kFrozen)) {
    file.remove_prefix(kFrozen.size());
    return file.substr(0, file.find_first_of(".>"));
  }
  std::size_t folder = file.find("-packages/");
  if (folder == std::string_view::npos) folder = file.find("/lib/python3");
  if (folder == std::string_view::npos) return base_name(file);
  file.remove_prefix(folder + 1);  // "packages/torch/...", "lib/python3.11/threading.py"
  if (file.starts_with("lib/")) file.remove_prefix(4);
  file.remove_prefix(std::min(file.find('/') + 1, file.size()));
  file = file.substr(0, file.find('/'));
  return file.ends_with(".py") ? file.substr(0, file.size() - 3) : file;
}

// True if the last part of the name contains a word for the operation of a lock: "SpinLock::lock", "fl_acquire",
// "enter_critical_section".
bool is_lock_function(std::string_view function) {
  function = function.substr(0, function.find('('));
  const std::size_t scope = function.rfind("::");
  if (scope != std::string_view::npos) function.remove_prefix(scope + 2);
  std::string name(function);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(std::array{"lock", "acquire", "enter", "wait"},
                             [&](const char* word) { return name.find(word) != std::string::npos; });
}

std::string frame_place(const model::Frame& frame) {
  if (!frame.file.empty() && frame.line > 0) return fmt::format("{}:{}", base_name(frame.file), frame.line);
  const std::string_view module = base_name(frame.module);
  if (!frame.function.empty()) return module.empty() ? frame.function : fmt::format("{} in {}", frame.function, module);
  return module.empty() ? std::string() : fmt::format("{}+{:#x}", module, frame.offset);
}

}  // namespace

Whose whose(const model::Frame& frame) {
  if (frame.function.empty() && frame.module.empty() && !frame.python) return Whose::kRuntime;
  if (frame.function == "_start" || is_of_runtime(frame)) return Whose::kRuntime;
  return is_of_library(frame) ? Whose::kLibrary : Whose::kUser;
}

std::string code_of(const model::Frame& frame) {
  if (frame.python) return frame.file.empty() ? "Python" : std::string(python_package(frame.file));
  if (frame.file.starts_with("/rustc/")) return "Rust's standard library";
  const std::string_view module = base_name(frame.module);
  const bool is_linked_in = module.find(".so") == std::string_view::npos;
  if (is_linked_in && starts_with_any(frame.function, {"GOMP_", "gomp_"})) return "libgomp";
  const bool is_of_cpp = starts_with_any(frame.function, {"std::", "__gnu_cxx::", "__gthread_", "void std::"}) ||
                         frame.file.find("/include/c++/") != std::string::npos;
  if (is_linked_in && is_of_cpp) return "the C++ library";
  return module.empty() ? "unknown code" : std::string(module);
}

std::pair<std::size_t, std::size_t> find_user_part(const model::Stack& stack) {
  const auto& frames = stack.frames;
  const auto first = std::ranges::find_if(frames, is_of_user);
  const auto last = std::find_if(frames.rbegin(), frames.rend(), is_of_user);
  if (first == frames.end()) return {0, 0};
  return {static_cast<std::size_t>(first - frames.begin()), static_cast<std::size_t>(frames.rend() - last)};
}

const model::Frame* find_user_frame(const model::Stack& stack) {
  const auto [first, last] = find_user_part(stack);
  return first == last ? nullptr : &stack.frames[first];
}

std::vector<const model::Frame*> find_user_frames(const model::Stack& stack) {
  std::vector<const model::Frame*> found;
  for (const model::Frame& frame : stack.frames) {
    if (is_of_user(frame) && !frame.approximate) found.push_back(&frame);
  }
  return found;
}

std::size_t find_user_line(const model::Stack& stack) {
  const auto [first, last] = find_user_part(stack);
  for (std::size_t i = first; i < last; ++i) {
    if (is_own_line(stack.frames[i])) return i;
  }
  return first;
}

std::string place(const model::Stack& stack) {
  const model::Frame* const frame = find_user_frame(stack);
  if (frame == nullptr) return {};
  const model::Frame* const line = &stack.frames[find_user_line(stack)];
  if (line == frame || (line->python && is_of_python_itself(*frame))) return frame_place(*line);
  return fmt::format("{}, {}", frame_place(*line), frame_place(*frame));
}

model::Stack without_lock_functions(const model::Stack& stack) {
  const auto [first, last] = find_user_part(stack);
  for (std::size_t i = first; i < last; ++i) {
    if (!is_of_user(stack.frames[i]) || is_lock_function(stack.frames[i].function)) continue;
    model::Stack rest = stack;
    rest.frames.erase(rest.frames.begin(), rest.frames.begin() + static_cast<std::ptrdiff_t>(i));
    return rest;
  }
  return stack;
}

std::string place_outside_of(const model::Stack& stack, model::Owner owner) {
  for (const model::Frame& frame : stack.frames) {
    if (is_of_user(frame) && model::find_owner_of_library(frame.module) != owner) return frame_place(frame);
  }
  return {};
}

std::string at(std::string_view before, const model::Stack& stack) {
  const std::string where = place(stack);
  return where.empty() ? where : std::string(before) + where;
}

std::string place_with_function(const model::Stack& stack) {
  const model::Frame* const frame = find_user_frame(stack);
  if (frame == nullptr) return {};
  if (find_user_line(stack) != find_user_part(stack).first) return place(stack);
  const bool named_already = frame->file.empty() || frame->line == 0 || frame->function.empty();
  return named_already ? frame_place(*frame) : fmt::format("{} ({})", frame_place(*frame), frame->function);
}

std::string shared_file_name(const model::Wait& wait) {
  return std::string(base_name(std::string_view(wait.path).substr(0, wait.path.find(" (deleted)"))));
}

std::string process(const model::Process& process, bool is_forked) {
  std::string name = fmt::format("{} {}", is_forked ? "child" : "process", process.pid);
  if (process.rank >= 0) name += fmt::format(" of rank {}", process.rank);
  return name;
}

std::string parent(const model::Process& process) {
  // The memory of a child does not show whether _Fork() made it. So a process whose pid is not known may be a more
  // distant ancestor.
  const bool is_unknown = process.is_some_ancestor || process.pid == 0;
  return is_unknown ? std::string("an ancestor") : fmt::format("process {}", process.pid);
}

std::string name_in_quotes(std::string_view name) {
  return name.empty() ? std::string() : fmt::format(" \"{}\"", name);
}

std::string thread(const model::Thread& thread) {
  if (thread.tid == 0) return "another thread";
  return fmt::format("thread {}{}", thread.tid, name_in_quotes(thread.name));
}

std::string worker_of(const model::Thread& thread) {
  if (thread.owner == model::Owner::kUnknown || thread.owner == model::Owner::kStdThread) return {};
  return fmt::format(" (a worker of {})", model::info_of(thread.owner).name);
}

std::string lock(const model::Lock& lock) {
  if (lock.kind == model::LockKind::kGuard && !lock.name.empty()) return static_variable(lock.name);
  if (!lock.name.empty()) return lock.name;
  const std::string where = lock.place.empty() ? std::string() : fmt::format(" ({})", lock.place);
  return fmt::format("the {} at {:#x}{}", lock_kind(lock), lock.address, where);
}

std::string static_variable(std::string_view guard) {
  constexpr std::string_view kPrefix = "guard variable for ";
  if (!guard.starts_with(kPrefix)) return fmt::format("the static behind {}", guard);
  guard.remove_prefix(kPrefix.size());
  // The last "::" outside of brackets ends the scope.
  std::size_t split = std::string_view::npos;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < guard.size(); ++i) {
    if (std::string_view("<({[").find(guard[i]) != std::string_view::npos) ++depth;
    if (std::string_view(">)}]").find(guard[i]) != std::string_view::npos) --depth;
    if (depth == 0 && guard[i] == ':' && guard[i + 1] == ':') split = i;
  }
  if (split == std::string_view::npos) return fmt::format("static {}", guard);
  return fmt::format("static {} of {}", guard.substr(split + 2), guard.substr(0, split));
}

std::string lock_kind(const model::Lock& lock) {
  switch (lock.kind) {
    case model::LockKind::kRwlockRead:
    case model::LockKind::kRwlockWrite: return "rwlock";
    case model::LockKind::kSpinlock: return "spinlock";
    case model::LockKind::kSemaphore: return "semaphore";
    case model::LockKind::kGuard: return "initialisation guard";
    case model::LockKind::kCustom: return lock.label.empty() ? "custom lock" : lock.label;
    case model::LockKind::kBarrier: return "barrier";
    case model::LockKind::kCondition: return "condition variable";
    case model::LockKind::kPython: return "lock of Python";
    case model::LockKind::kMutex: break;
  }
  std::string kind;
  if (lock.robust) kind += "robust ";
  if (lock.priority_inherit) kind += "priority-inheriting ";
  switch (lock.type) {
    case model::MutexType::kRecursive: kind += "recursive "; break;
    case model::MutexType::kErrorcheck: kind += "error-checking "; break;
    case model::MutexType::kAdaptive: kind += "adaptive "; break;
    case model::MutexType::kNormal:
    case model::MutexType::kUnknown: break;
  }
  return kind + "mutex";
}

std::string signals(std::uint64_t set) {
  std::string names;
  for (int number = 1; number <= 64; ++number) {
    if ((set >> static_cast<unsigned>(number - 1) & 1U) == 0) continue;
    const char* const name = ::sigabbrev_np(number);
    names += names.empty() ? "" : ", ";
    names += name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
  }
  return names.empty() ? "no signal" : names;
}

std::string awaited(const model::Model& model, const model::LostWait& wait) {
  const char* kind = "condition variable";
  switch (wait.kind) {
    case model::AwaitedKind::kBarrier: kind = "barrier"; break;
    case model::AwaitedKind::kSemaphore: kind = "semaphore"; break;
    case model::AwaitedKind::kFutex: kind = "futex word"; break;
    case model::AwaitedKind::kThread: {
      for (const model::Thread& other : model.threads) {
        const bool is_of_it = other.process == model.threads[wait.thread].process;
        if (is_of_it && wait.object != 0 && static_cast<std::uint64_t>(other.tid) == wait.object)
          return "the end of " + thread(other);
      }
      return "the end of another thread";
    }
    case model::AwaitedKind::kSignals: return signals(wait.object);
    case model::AwaitedKind::kCondition: break;
  }
  return wait.name.empty() ? fmt::format("the {} at {:#x}", kind, wait.object) : fmt::format("{} {}", kind, wait.name);
}

std::string duration(std::uint64_t ms) {
  const std::uint64_t seconds = ms / 1000;
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (seconds < 60) return fmt::format("{}.{} s", seconds, ms % 1000 / 100);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::string count(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

bool is_python_library(const model::Frame& frame) {
  const std::string_view file = frame.file;
  if (file.empty() || file.starts_with("<frozen ")) return true;
  const std::size_t folder = file.find("/lib/python3");
  return folder != std::string_view::npos && file.find("-packages/", folder) == std::string_view::npos;
}

bool is_in_signal_handler(const model::Stack& stack) {
  return std::ranges::any_of(stack.frames,
                             [](const model::Frame& frame) { return frame.function == model::kSignalFrame; });
}

bool is_python(const model::Process& process) { return base_name(process.exe).starts_with("python"); }

std::string ways_out(const model::Process& process) {
  std::string text;
  for (const std::string& one : process.ways_out) text += (text.empty() ? "" : " or ") + one;
  return text.empty() ? "a signal handler" : text;
}

bool is_python_lock(const model::Stack& stack) {
  return std::ranges::any_of(
      stack.frames, [](const model::Frame& frame) { return frame.function.starts_with("PyThread_acquire_lock"); });
}

bool is_python_semaphore(const model::Stack& stack) {
  if (is_python_lock(stack)) return true;
  // Frames of Python code may come before the interpreter's own frames.
  const auto caller = std::ranges::find_if_not(stack.frames, [](const model::Frame& frame) {
    const std::string_view name = base_name(frame.module);
    return frame.python || name.starts_with("libc.so") || name.starts_with("libpthread") ||
           name.starts_with("libforksight");
  });
  if (caller == stack.frames.end()) return false;
  const std::string_view name = base_name(caller->module);
  return name.starts_with("python3") || name.starts_with("libpython3");
}

}  // namespace forksight::words
