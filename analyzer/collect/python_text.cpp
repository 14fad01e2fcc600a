#include "collect/python_text.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace forksight::collect {

namespace {

constexpr std::size_t kMostThreads = 256;
constexpr std::size_t kMostFrames = 128;  // for one thread; the dumper writes at most 100

constexpr std::string_view kFile = "  File \"";
constexpr std::string_view kLine = "\", line ";
constexpr std::string_view kFunction = " in ";
constexpr std::string_view kHead = "(most recent call first):";

// Parses a line such as "  File "/app/train.py", line 50 in main". The dumper does not escape names. So the last `",
// line ` ends the name of the file, and the first ` in ` after that begins the name of the function.
bool parse_frame(std::string_view line, model::Frame& frame) {
  if (!line.starts_with(kFile)) return false;
  const std::size_t number = line.rfind(kLine);
  if (number == std::string_view::npos || number < kFile.size()) return false;
  const std::string_view rest = line.substr(number + kLine.size());
  const std::size_t function = rest.find(kFunction);
  if (function == std::string_view::npos) return false;
  frame.file = line.substr(kFile.size(), number - kFile.size());
  frame.function = rest.substr(function + kFunction.size());
  // If the interpreter does not know the number of the line, the dumper writes "???".
  std::from_chars(rest.data(), rest.data() + function, frame.line);
  frame.line = std::max(frame.line, 0);
  if (frame.file == "???") frame.file.clear();
  frame.python = true;
  return true;
}

// Parses a line such as "Thread 0x00007f01c2ffd700 [name] (most recent call first):", "Current thread 0x..." or "Stack
// ...".
bool parse_head(std::string_view line, std::uint64_t writer, std::uint64_t& pointer) {
  if (!line.ends_with(kHead)) return false;
  if (line.starts_with("Stack ")) {
    pointer = writer;
    return true;
  }
  const std::size_t digits = line.find("hread 0x");
  if (digits == std::string_view::npos || digits > 9) return false;
  const char* const first = line.data() + digits + 8;
  return std::from_chars(first, line.data() + line.size(), pointer, 16).ptr != first;
}

}  // namespace

std::vector<model::PythonThread> parse_python_stacks(std::string_view text, std::uint64_t writer) {
  std::vector<model::PythonThread> threads;
  bool follows = false;  // the next frames belong to threads.back()
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::uint64_t pointer = 0;
    model::Frame frame;
    if (parse_head(line, writer, pointer)) {
      const bool known = std::ranges::any_of(threads, [&](const auto& thread) { return thread.pointer == pointer; });
      follows = !known && threads.size() < kMostThreads;
      if (follows) threads.emplace_back().pointer = pointer;
    } else if (follows && parse_frame(line, frame) && threads.back().stack.frames.size() < kMostFrames) {
      threads.back().stack.frames.push_back(std::move(frame));
    } else if (follows && line == "  ...") {
      threads.back().stack.cut = true;
    }
  }
  std::erase_if(threads, [](const auto& thread) { return !thread.stack.known(); });
  return threads;
}

}  // namespace forksight::collect
