#include "model/python_frames.hpp"

#include <algorithm>
#include <string_view>

namespace forksight::model {
namespace {

bool is_interpreter(const Frame& frame) {
  const std::size_t slash = frame.module.rfind('/');
  const std::string_view name = std::string_view(frame.module).substr(slash == std::string::npos ? 0 : slash + 1);
  return !frame.python && (name.starts_with("python") || name.starts_with("libpython"));
}

}  // namespace

void splice_python(Stack& native, const Stack& python) {
  auto& frames = native.frames;
  auto at =
      std::ranges::find_if(frames, [](const auto& frame) { return frame.function == "_PyEval_EvalFrameDefault"; });
  if (at == frames.end()) at = std::ranges::find_if(frames, is_interpreter);
  frames.insert(at, python.frames.begin(), python.frames.end());
}

}  // namespace forksight::model
