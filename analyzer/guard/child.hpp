// A child process reads the data that other users control. So this data can neither block nor crash the command. A file
// of another user may be on a file system that does not answer. A call for such a file blocks in the kernel, and not
// even SIGKILL can end the call. If a call blocks, this process abandons the child and notes the file system as dead
// (files/dead_places.hpp). Then this process starts another child, whose answer lacks only the data of that file
// system. The child gives up the rights to change anything (proc/reader_rights.hpp). A child of root also gives up its
// user. Then another process, the opener (guard/opener.hpp), opens the files that the child may read. Only this code
// can make a files::Reader, and nothing can be parsed without a files::Reader.
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

// Work that runs in the child. It returns an exit status, writes to standard output and standard error, and does not
// read standard input.
using Work = std::function<int(const files::Reader&)>;

struct Options {
  // Returns a signal that the child is to get, or 0. This function is called at least five times a second, until it has
  // returned SIGKILL. May be empty.
  std::function<int()> next_signal;
  std::function<void()> in_child;  // the child calls this function first of all; may be empty
  // Gets each piece of the child's standard output at once. If this function returns false, the child is ended. Empty:
  // Answer::out gets the whole output.
  std::function<bool(std::string_view)> on_output;
  std::optional<std::chrono::steady_clock::duration> limit;  // the child is ended after this time
  // Without on_output, the child is ended if its standard output has more bytes than this. A report has some megabytes
  // at most.
  std::size_t most_output = std::size_t{512} << 20U;
  // False for work that reads only files. A child of root then keeps no capability at all.
  bool examines_processes = true;
};

enum class Failure {
  kNone,
  kUnending,  // a signal should have ended the child, but did not
  kLate,      // the limit has passed
  kTooMuch,   // the standard output has more than Options::most_output bytes
  // File systems do not answer. Either a child was blocked at a file system that was already noted as dead, or there
  // are too many dead file systems.
  kDeadPlace,
  kStopped,  // a signal stopped the child or the opener, and this process could not keep it going
};

struct Answer {
  int status = 0;                  // of the child, as wait(2) returns it, if the child has ended
  std::string out;                 // the standard output of the child
  bool is_output_refused = false;  // on_output() has returned false
  Failure failure = Failure::kNone;
  bool has_child = true;  // false: no process could be made, and nothing was done
  int error = 0;          // without a child: the errno
};

// Runs `work` in a child process. The standard error of the child appears at once on that of this process.
Answer run_child(const Work& work, const Options& options);

// Runs `work` in this process, with the rights of this process. For work that a child cannot do.
int run_here(const Work& work);

// True if there still is a child that no signal can end, because its call for a file does not return.
bool has_abandoned_child();

// Returns the sentence about a child that could not be started, or that did not end by itself; "" if the child ended by
// itself.
std::string describe_failure(const Answer& answer);

}  // namespace forksight::guard
