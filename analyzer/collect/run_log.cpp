#include "collect/run_log.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "collect/run_log_names.hpp"
#include "files/replace_file.hpp"

namespace forksight::collect {
namespace {

using Json = nlohmann::json;

Json stack_to_json(const model::Stack& stack) {
  Json frames = Json::array();
  for (const model::Frame& frame : stack.frames) {
    Json json{{"function", frame.function}, {"module", frame.module}, {"offset", fmt::format("{:#x}", frame.offset)}};
    if (!frame.file.empty()) json["file"] = frame.file;
    if (frame.line != 0) json["line"] = frame.line;
    if (frame.approximate) json["approximate"] = true;
    if (frame.inlined) json["inlined"] = true;
    if (frame.python) json["python"] = true;
    frames.push_back(std::move(json));
  }
  return frames;
}

// Leaves out fields that do not apply to this kind of ender.
Json ender_to_json(const model::Ender& ender) {
  Json json{{"kind", name_of(kEnderKindNames, ender.kind)}};
  if (ender.kind != model::EnderKind::kProcess) {
    json["what"] = ender.what;
    if (ender.in_ms) json["in_ms"] = *ender.in_ms;
    return json;
  }
  json["pid"] = ender.pid;
  json["via"] = ender.via;
  json["command"] = ender.command;
  json["state"] = std::string(1, ender.state);
  if (ender.tid != 0) json["tid"] = ender.tid;
  if (ender.fd >= 0) json["fd"] = ender.fd;
  if (ender.is_frozen) json["frozen"] = true;
  if (!ender.may_have_written) json["never_wrote"] = true;
  return json;
}

// Leaves out fields that do not apply to this wait. This keeps the file small, because each thread has a row.
Json wait_to_json(const model::Wait& wait) {
  Json json{{"tid", wait.tid},
            {"name", wait.name},
            {"state", std::string(1, wait.state)},
            {"kind", name_of(kWaitKindNames, wait.kind)},
            {"object", fmt::format("{:#x}", wait.object)},
            {"target_pid", wait.target_pid},
            {"has_timeout", wait.has_timeout},
            {"is_shared", wait.is_shared},
            {"is_stuck", wait.is_stuck},
            {"wakers_known", wait.wakers_known}};
  if (wait.use != model::FutexUse::kUnknown) {
    json["use"] = name_of(kFutexUseNames, wait.use);
    json["owner"] = wait.owner;
    json["owner_is_gone"] = wait.owner_is_gone;
    json["readers"] = wait.readers;
    json["mutex_type"] = name_of(kMutexTypeNames, wait.mutex_type);
  }
  if (wait.semaphore_use != model::SemaphoreUse::kUnknown)
    json["semaphore_use"] = name_of(kSemaphoreUseNames, wait.semaphore_use);
  if (wait.fd >= 0) json["fd"] = wait.fd;
  if (!wait.path.empty()) json["path"] = wait.path;
  if (!wait.object_module.empty()) {
    json["object_module"] = wait.object_module;
    json["module_bias"] = fmt::format("{:#x}", wait.module_bias);
  }
  if (!wait.object_name.empty()) json["object_name"] = wait.object_name;
  if (wait.is_inherited) json["inherited"] = true;
  if (wait.may_be_cancelled) json["may_be_cancelled"] = true;
  if (wait.stack.known()) json["stack"] = stack_to_json(wait.stack);
  if (wait.stack.cut) json["stack_cut"] = true;
  if (!wait.call.empty()) json["call"] = wait.call;
  if (!wait.target.empty()) json["target"] = wait.target;
  if (wait.for_ms) json["for_ms"] = *wait.for_ms;
  if (wait.are_enders_known) {
    Json& enders = json["enders"] = Json::array();
    for (const model::Ender& ender : wait.enders) enders.push_back(ender_to_json(ender));
  }
  if (wait.wakers.empty()) return json;
  Json& wakers = json["wakers"] = Json::array();
  for (const model::Waker& waker : wait.wakers) {
    wakers.push_back({{"pid", waker.pid}, {"tid", waker.tid}, {"fd", waker.fd}, {"via", waker.via}});
  }
  return json;
}

Json process_to_json(const LoggedProcess& process) {
  Json json{{"pid", process.pid},
            {"ppid", process.ppid},
            {"start_ticks", process.start_ticks},
            {"comm", process.comm},
            {"exe", process.exe},
            {"cmdline", process.cmdline},
            {"liveness", name_of(kLivenessNames, process.liveness)}};
  if (process.stuck_for_ms != 0) json["stuck_for_ms"] = process.stuck_for_ms;
  if (process.never_had_other_threads) json["lone"] = true;
  if (!process.ways_out.empty()) json["ways_out"] = process.ways_out;
  if (process.may_be_timed_out) json["may_be_timed_out"] = true;
  if (process.killed_by_run) json["killed_by_run"] = true;
  if (process.is_unreadable) json["unreadable"] = true;
  if (!process.went_on.empty()) json["went_on"] = process.went_on;
  if (process.exit_status) json["exit_status"] = *process.exit_status;
  if (process.unheard_signals != 0) {
    json["unheard_signals"] = fmt::format("{:#x}", process.unheard_signals);
    json["unheard_for_ms"] = process.unheard_for_ms;
  }
  if (process.shim_start) json["shim_start"] = fmt::format("{:#x}", *process.shim_start);
  if (process.waits_for_pid != 0) {
    json["waits_for"] = {{"pid", process.waits_for_pid}, {"start_ticks", process.waits_for_start_ticks}};
    json["waits_via"] = process.waits_via;
  }
  Json& waits = json["waits"] = Json::array();
  for (const model::Wait& wait : process.waits) waits.push_back(wait_to_json(wait));
  return json;
}

}  // namespace

std::string to_json(const RunLog& log) {
  Json json{{"schema", kRunLogSchema},
            {"command", log.command},
            {"started_at", log.started_at},
            {"host", log.host},
            {"limits", log.limits}};
  Json& processes = json["processes"] = Json::array();
  for (const LoggedProcess& process : log.processes) processes.push_back(process_to_json(process));
  for (const LoggedEnd& end : log.ends) {
    json["ends"].push_back({{"pid", end.pid}, {"start_ticks", end.start_ticks}, {"gone_ns", end.gone_ns}});
  }
  // Characters that are not ASCII are escaped, so a terminal that shows the file interprets none of them.
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

Result<std::filesystem::path> write_run_log(const std::filesystem::path& folder, const RunLog& log, int fd) {
  const std::filesystem::path file = folder / kRunLogFile;
  const std::string problem = fd < 0 ? files::replace_file(file.string(), to_json(log), 0600)
                                     : files::replace_file(fd, kRunLogFile, to_json(log), 0600);
  if (!problem.empty()) return Error{fmt::format("{}: cannot be written: {}", file.string(), problem)};
  return file;
}

}  // namespace forksight::collect
