#include "record/module_records.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

#include "guest/executable.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constinit bool g_all_recorded = false;

__attribute__((noinline)) void record_module(Module& module, bool is_main) {
  // Not on the stack, which may be small. Only one thread at a time works on the table of modules.
  static char path[512];
  std::size_t length = 0;
  const auto* name = reinterpret_cast<const char*>(module.name);
  if (is_main) {
    length = read_executable_path(path, sizeof path);
  } else if (module.bias == getauxval(AT_SYSINFO_EHDR)) {
    memcpy(path, "[vdso]", length = 6);
  } else {
    length = strnlen(path, read_memory(name, path, sizeof path));
  }
  Record record(trace::RecordType::kModule, sizeof(trace::ModuleRecord) + length);
  if (!record) return;
  auto* const entry = record.as<trace::ModuleRecord>();
  entry->bias = module.bias;
  entry->start = module.start;
  entry->end = module.end;
  entry->build_id_bytes = module.build_id_bytes;
  memcpy(entry->build_id, module.build_id, sizeof entry->build_id);
  entry->path_bytes = static_cast<std::uint32_t>(length);
  memcpy(record.payload() + sizeof(trace::ModuleRecord), path, length);
  record.commit();
  module.recorded = true;
}

}  // namespace

void await_record(Module&) { g_all_recorded = false; }

void record_gone_module(Module& module) {
  if (module.recorded) append(trace::RecordType::kModuleGone, trace::ModuleGoneRecord{module.bias});
}

void record_modules() {
  if (!trace_is_open()) return;
  for (std::uint32_t i = 0; i < module_count(); ++i) {
    if (!module_at(i).recorded) record_module(module_at(i), i == 0);
  }
  g_all_recorded = true;
}

bool modules_await_records() { return !g_all_recorded && trace_is_open(); }

void at_fork::Modules::reads(const Fork&) { release_modules_in_child(); }

}  // namespace forksight
