// A child process that reads what strangers control, so that it can neither block nor crash the command. A file of
// another user may be on a file system that does not answer. A call for such a file blocks in the kernel, and not even
// SIGKILL can end it. If that happens, this process abandons the child, notes the file system as dead
// (files/dead_places.hpp), and starts another child: its answer then lacks only that file system. The child gives up
// the rights to change anything (proc/reader_rights.hpp). Nothing else can make a files::Reader, without which nothing
// can be parsed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "files/reader.hpp"

namespace forksight::guard {

// Runs in the child. Returns an exit status. Writes to standard output and standard error, and reads no standard input.
using Work = std::function<int(const files::Reader&)>;

struct Options {
  // Returns a signal that the child is to get, or 0. It is called at least five times a second, until it has returned
  // SIGKILL. May be empty.
  std::function<int()> next_signal;
  std::function<void()> in_child;  // called first of all in the child; may be empty
  // Gets each piece of the child's standard output at once. If it returns false, the child is ended. Empty: the answer
  // has the whole output.
  std::function<bool(std::string_view)> on_output;
  std::optional<std::chrono::steady_clock::duration> limit;  // the child is ended when it has taken so long
  // Without on_output: the child is ended when its standard output has more bytes. A report has some megabytes at most.
  std::size_t most_output = std::size_t{512} << 20U;
};

enum class Failure {
  kNone,
  kUnending,   // a signal was to end the child, and did not
  kLate,       // the limit has passed
  kTooMuch,    // the standard output has more than Options::most_output bytes
  kDeadPlace,  // file systems do not answer, and leaving them out did not help, or there are too many
};

struct Answer {
  int status = 0;                  // of the child, as of wait(2), if it has ended
  std::string out;                 // its standard output
  bool is_output_refused = false;  // on_output() has returned false
  Failure failure = Failure::kNone;
  bool has_child = true;  // false: no process could be made. Nothing was done
};

// The standard error of the child appears at once on that of this process.
Answer run_child(const Work& work, const Options& options);

// For a process that may not be replaced by a child: runs `work` here, with the rights of this process.
int run_here(const Work& work);

// True if a child is left that no signal can end, because its call for a file does not return.
bool has_abandoned_child();

// The sentence about a child that has not ended by itself; "" if it has.
std::string describe_failure(const Answer& answer);

}  // namespace forksight::guard
