#include "inspect/python/python_frames.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "forksight/abi/python.hpp"
#include "forksight/abi/thread.hpp"
#include "inspect/python/python_lines.hpp"
#include "inspect/python/python_objects.hpp"

namespace forksight::inspect {
namespace {

constexpr std::size_t kMostInterpreters = 64;
constexpr std::size_t kMostThreads = 4096;
constexpr std::size_t kMostFrames = 128;  // the most that are shown for one thread
constexpr std::size_t kMostSteps = 1024;  // the most that are looked at for one thread
constexpr int kMostAttempts = 4;
// Limits for all threads together. They are needed because frames may form rings, and because a table of lines is
// searched anew for each frame.
constexpr std::size_t kMostStepsOfAll = 400'000;
constexpr std::size_t kMostLineBytesOfAll = std::size_t{512} << 20U;

class Reader {
 public:
  Reader(const image::Image& image, const PythonInterpreter& python)
      : image_(image), memory_(*image.memory), python_(python), layout_(python.layout), objects_(memory_, layout_) {}

  std::vector<PythonThread> read();
  void add_limits_of_rings(std::int32_t pid, std::vector<std::string>& limits) const;
  // True if the memory has no list of interpreters, or if the contents of a thread state are impossible.
  bool is_strange() const { return is_strange_; }
  bool has_given_up() const { return steps_left_ == 0 || line_bytes_left_ == 0; }

 private:
  std::uint64_t word(std::uint64_t address) const { return memory_.value<std::uint64_t>(address).value_or(0); }
  std::uint64_t gil_holder(std::uint64_t interpreter) const;
  void read_interpreter(std::uint64_t interpreter);
  void add_thread(std::uint64_t state, std::uint64_t gil_holder);
  std::int32_t find_tid(std::uint64_t state, std::uint64_t pointer) const;
  std::uint64_t innermost_frame(std::uint64_t state) const;
  model::Stack walk(std::uint64_t frame, std::uint64_t& innermost_code, bool& is_ring);
  std::optional<model::Frame> read_frame(std::uint64_t frame, std::uint64_t code);
  std::uint64_t find_instructions(std::uint64_t frame, std::uint64_t code, const PythonCode& of) const;
  int find_line(std::uint64_t frame, std::uint64_t address, const PythonCode& code);

  const image::Image& image_;
  const image::Memory& memory_;
  const PythonInterpreter& python_;
  const PythonLayout& layout_;
  PythonObjects objects_;
  std::vector<PythonThread> threads_;
  bool is_strange_ = false;
  std::size_t rings_ = 0;        // threads whose frames form a ring
  bool is_list_a_ring_ = false;  // the list of interpreters, or a list of threads, is a ring
  std::size_t steps_left_ = kMostStepsOfAll;
  std::size_t line_bytes_left_ = kMostLineBytesOfAll;
};

std::vector<PythonThread> Reader::read() {
  std::set<std::uint64_t> seen;
  const auto first = memory_.value<std::uint64_t>(python_.runtime + layout_.interpreters);
  is_strange_ = !first;
  std::uint64_t interpreter = first.value_or(0);
  while (interpreter != 0 && seen.size() < kMostInterpreters) {
    is_list_a_ring_ = is_list_a_ring_ || !seen.insert(interpreter).second;
    if (is_list_a_ring_) break;
    read_interpreter(interpreter);
    interpreter = word(interpreter + layout_.interpreter_next);
  }
  // Interpreters and states are listed in reverse order of their creation.
  std::ranges::reverse(threads_);
  return std::move(threads_);
}

// Returns the thread state that holds the GIL; 0: none.
std::uint64_t Reader::gil_holder(std::uint64_t interpreter) const {
  const std::uint64_t gil =
      layout_.runtime_gil != 0 ? python_.runtime + layout_.runtime_gil : word(interpreter + layout_.interpreter_gil);
  if (gil == 0 || memory_.value<std::int32_t>(gil + layout_.gil_locked) != 1) return 0;
  return word(gil + layout_.gil_holder);
}

void Reader::read_interpreter(std::uint64_t interpreter) {
  const std::uint64_t holder = gil_holder(interpreter);
  std::set<std::uint64_t> seen;
  std::uint64_t state = word(interpreter + layout_.threads);
  while (state != 0 && threads_.size() < kMostThreads && seen.size() < kMostThreads) {
    is_list_a_ring_ = is_list_a_ring_ || !seen.insert(state).second;
    if (is_list_a_ring_) return;
    if (word(state + layout_.thread_interpreter) != interpreter) {
      is_strange_ = true;
      return;
    }
    add_thread(state, holder);
    state = word(state + layout_.thread_next);
  }
}

void Reader::add_thread(std::uint64_t state, std::uint64_t gil_holder) {
  PythonThread thread;
  thread.pointer = word(state + layout_.thread_id);
  if (thread.pointer == 0) return;
  thread.holds_gil = state == gil_holder;
  std::uint64_t code = 0;
  bool is_whole = false;
  bool is_ring = false;
  // A running thread may change its frames during the read.
  for (int attempt = 0; attempt < kMostAttempts && !is_whole && steps_left_ > 0; ++attempt) {
    thread.stack = walk(innermost_frame(state), code, is_ring);
    is_whole = !thread.stack.cut || thread.stack.frames.size() == kMostFrames;
  }
  if (is_ring) ++rings_;
  if (!is_whole && !thread.stack.known()) is_strange_ = true;
  if (thread.stack.known()) thread.locals = objects_.local_names(code);
  // Several states may have the pointer of the same thread. A state that was made for a future thread has the pointer
  // of the thread that made the state. A thread that runs in several interpreters has a state in each of them.
  const auto known = std::ranges::find(threads_, thread.pointer, &PythonThread::pointer);
  if (known != threads_.end()) {
    known->holds_gil = known->holds_gil || thread.holds_gil;
    if (known->stack.known()) return;
    known->stack = std::move(thread.stack);
    known->locals = std::move(thread.locals);
    return;
  }
  thread.tid = find_tid(state, thread.pointer);
  threads_.push_back(std::move(thread));
}

// Finds the thread by its pointer. If no thread is known to have this pointer, finds the thread by an id in the memory
// of the process. Such ids belong to the process's own pid namespace. In a forked child, Python's id of the forking
// thread is out of date until Python's own atfork handler has run.
std::int32_t Reader::find_tid(std::uint64_t state, std::uint64_t pointer) const {
  const auto by_pointer = std::ranges::find(image_.threads, pointer, &image::Thread::fs_base);
  if (by_pointer != image_.threads.end()) return by_pointer->tid;
  const auto named = [&](std::uint64_t number) {
    return std::ranges::any_of(image_.threads, [&](const image::Thread& thread) {
      return thread.fs_base == 0 && thread.tid > 0 && static_cast<std::uint64_t>(own_number(thread)) == number;
    });
  };
  const abi::ThreadLayout* const layout = abi::thread_layout(image_.libc.version);
  // In a fork, the kernel writes the child's own tid into the struct pthread.
  const auto in_pthread = layout == nullptr ? 0 : memory_.value<std::int32_t>(pointer + layout->tid).value_or(0);
  if (in_pthread > 0 && named(static_cast<std::uint64_t>(in_pthread))) return image_.tid_of(in_pthread);
  if (layout_.native_id == 0) return 0;
  const std::uint64_t native = word(state + layout_.native_id);
  return named(native) ? image_.tid_of(static_cast<std::int32_t>(native)) : 0;
}

std::uint64_t Reader::innermost_frame(std::uint64_t state) const {
  const std::uint64_t pointer = word(state + layout_.thread_frame);
  if (layout_.has_cframe == 0) return pointer;
  return pointer == 0 ? 0 : word(pointer + layout_.cframe_frame);
}

void Reader::add_limits_of_rings(std::int32_t pid, std::vector<std::string>& limits) const {
  if (rings_ > 0) {
    limits.push_back(
        fmt::format("process {}: the Python frames of {} thread{} form a ring, or changed while they were read: "
                    "these stacks are cut at this place",
                    pid, rings_, rings_ == 1 ? "" : "s"));
  }
  if (is_list_a_ring_) {
    limits.push_back(
        fmt::format("process {}: the list of Python's threads forms a ring, or changed while it was read: some threads "
                    "may have no lines of Python",
                    pid));
  }
}

model::Stack Reader::walk(std::uint64_t frame, std::uint64_t& innermost_code, bool& is_ring) {
  model::Stack stack;
  is_ring = false;
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t step = 0; frame != 0; ++step) {
    is_ring = !seen.insert(frame).second;
    stack.cut = is_ring || steps_left_ == 0;
    if (stack.cut) break;
    --steps_left_;
    const bool is_shim =
        layout_.minor >= 12 && memory_.value<std::uint8_t>(frame + layout_.frame_owner) >= abi::kFirstPythonShimOwner;
    if (!is_shim) {
      const std::uint64_t code = word(frame + layout_.frame_code) & ~abi::kPythonReferenceBits;
      auto shown = step < kMostSteps && stack.frames.size() < kMostFrames ? read_frame(frame, code) : std::nullopt;
      if (!shown) {
        stack.cut = true;
        break;
      }
      if (!stack.known()) innermost_code = code;
      stack.frames.push_back(std::move(*shown));
    }
    const auto next = memory_.value<std::uint64_t>(frame + layout_.frame_back);
    stack.cut = !next || step >= kMostSteps;
    if (stack.cut) break;
    frame = *next;
  }
  return stack;
}

std::optional<model::Frame> Reader::read_frame(std::uint64_t frame, std::uint64_t address) {
  const PythonCode* const code = objects_.code(address);
  if (code == nullptr || !objects_.take_from_budget(code->name.size() + code->file.size() + sizeof(model::Frame)))
    return std::nullopt;
  model::Frame shown;
  shown.function = code->name;
  shown.file = code->file;
  shown.line = find_line(frame, address, *code);
  shown.python = true;
  return shown;
}

// Returns the address of the instructions that the frame runs. A code object may have several copies of its
// instructions.
std::uint64_t Reader::find_instructions(std::uint64_t frame, std::uint64_t code, const PythonCode& of) const {
  const std::uint64_t copies = layout_.code_copies == 0 ? 0 : word(code + layout_.code_copies);
  if (copies == 0) return of.instructions;
  const auto index = memory_.value<std::int32_t>(frame + layout_.frame_copy_index).value_or(0);
  const bool is_there = index >= 0 && static_cast<std::uint64_t>(index) < word(copies);
  const std::uint64_t copy = is_there ? word(copies + (static_cast<std::uint64_t>(index) + 1) * sizeof(copies)) : 0;
  return copy == 0 ? of.instructions : copy;
}

int Reader::find_line(std::uint64_t frame, std::uint64_t of, const PythonCode& code) {
  constexpr std::int64_t kUnit = 2;  // bytes of an instruction
  if (layout_.frame_line != 0) {
    // The frame has its line in this field only while Python's own tracing is on for the thread.
    const auto line = memory_.value<std::int32_t>(frame + layout_.frame_line).value_or(0);
    if (line > 0) return line;
  }
  std::int64_t address = 0;
  if (code.instructions != 0) {
    address = static_cast<std::int64_t>(word(frame + layout_.frame_instruction) - find_instructions(frame, of, code));
  } else {
    address = memory_.value<std::int32_t>(frame + layout_.frame_instruction).value_or(-1);
    if (layout_.lines != PythonLines::kDeltas && address >= 0) address *= kUnit;
  }
  const std::size_t bytes = code.lines.size();
  if (bytes > line_bytes_left_) line_bytes_left_ = 0;
  if (line_bytes_left_ == 0) return 0;
  line_bytes_left_ -= bytes;
  return find_python_line(layout_.lines, code.lines, code.first_line, address);
}

}  // namespace

std::vector<PythonThread> read_python_threads(const image::Image& image, const PythonInterpreter& python,
                                              std::vector<std::string>& limits) {
  Reader reader(image, python);
  auto threads = reader.read();
  const bool any = std::ranges::any_of(threads, [](const PythonThread& thread) { return thread.stack.known(); });
  if (!any && reader.is_strange()) {
    limits.push_back(
        fmt::format("process {}: its Python stacks cannot be read: its memory is incomplete, or does not have the "
                    "layout of CPython 3.{}",
                    image.pid, python.layout.minor));
  }
  if (reader.has_given_up()) {
    limits.push_back(
        fmt::format("process {}: the Python frames in its memory are too many, or form a ring: some "
                    "threads have no lines of Python",
                    image.pid));
  }
  reader.add_limits_of_rings(image.pid, limits);
  return threads;
}

std::vector<PythonThread> read_python_threads(const image::Image& image, symbols::Symbolizer& symbols,
                                              std::vector<std::string>& limits) {
  const auto python = find_python(image, symbols, limits);
  return python ? read_python_threads(image, *python, limits) : std::vector<PythonThread>{};
}

}  // namespace forksight::inspect
