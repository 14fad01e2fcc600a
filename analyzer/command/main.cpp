// The command `forksight`. If a library throws an exception, prints one line and returns an exit status.
#include <exception>
#include <new>

#include "command/command_line.hpp"
#include "command/exit_status.hpp"
#include "command/output.hpp"
#include "files/cut_files.hpp"
#include "guard/find_libc.hpp"

int main(int argc, char** argv) {
  forksight::files::read_lost_pages_as_zeros();
  forksight::guard::parse_only_in_children();
  try {
    return forksight::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    forksight::say_error("forksight has no more memory");
  } catch (const std::exception& error) {
    forksight::say_error(error.what());
  } catch (...) {
    forksight::say_error("an unknown failure inside of a library");
  }
  return forksight::as_int(forksight::ExitStatus::kUnreadable);
}
