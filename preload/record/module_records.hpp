// Writes the kModule and kModuleGone records of loaded objects.
#pragma once

#include "loader/modules.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// Called by the library events (loader/library_events.hpp). await_record() notes that a module needs a record, and
// record_modules() writes the records. modules_await_records() is true if a trace is open and some records are not
// written yet.
void await_record(Module& module);
void record_gone_module(Module& module);
void record_modules();
bool modules_await_records();

namespace at_fork {
struct Modules {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
