#include "model/python_frames.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/base_name.hpp"

namespace forksight::model {
namespace {

bool is_interpreter(const Frame& frame) {
  const std::string_view name = base_name(frame.module);
  return !frame.python && (name.starts_with("python") || name.starts_with("libpython"));
}

// Only get() of SimpleQueue waits in the module _queue. The module may be a part of the interpreter.
bool is_of_simple_queue(const Frame& frame) {
  return !frame.python && (base_name(frame.module).starts_with("_queue.") ||
                           frame.function.find("SimpleQueue_get") != std::string::npos);
}

// Functions of threading.py that wait for the end of a thread.
constexpr std::array<std::string_view, 2> kWaitsForEnd = {"_wait_for_tstate_lock", "_shutdown"};

}  // namespace

void splice_python(Stack& native, const Stack& python) {
  auto& frames = native.frames;
  auto at =
      std::ranges::find_if(frames, [](const auto& frame) { return frame.function == "_PyEval_EvalFrameDefault"; });
  if (at == frames.end()) at = std::ranges::find_if(frames, is_interpreter);
  frames.insert(at, python.frames.begin(), python.frames.end());
}

bool is_python_signal(const Stack& stack) {
  const auto loop = std::ranges::find(stack.frames, "_PyEval_EvalFrameDefault", &Frame::function);
  if (std::any_of(stack.frames.begin(), loop, is_of_simple_queue)) return true;
  const auto innermost = std::ranges::find_if(stack.frames, &Frame::python);
  return innermost != stack.frames.end() && innermost->file.ends_with("/threading.py") &&
         std::ranges::find(kWaitsForEnd, innermost->function) != kWaitsForEnd.end();
}

}  // namespace forksight::model
