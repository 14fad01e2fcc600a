#include "render/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "files/budgets.hpp"
#include "forksight/version.hpp"
#include "render/findings_json.hpp"
#include "render/names.hpp"

namespace forksight::render {

namespace {

// Keeps the order in which members are written: people read the first members first.
using Json = nlohmann::ordered_json;

template <class Items, class ToJson>
Json array_of(const Items& items, ToJson to_json) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(to_json(item));
  return array;
}

Json to_json(const model::Waker& waker) {
  return {{"pid", waker.pid}, {"tid", waker.tid}, {"fd", waker.fd}, {"via", waker.via}};
}

Json to_json(const model::Ender& ender) {
  Json json = {{"kind", name_of(ender.kind)}};
  switch (ender.kind) {
    case model::EnderKind::kProcess:
      json["pid"] = ender.pid;
      json["tid"] = ender.tid;
      json["fd"] = ender.fd;
      json["via"] = ender.via;
      json["command"] = ender.command;
      json["state"] = std::string(1, ender.state);
      json["frozen"] = ender.is_frozen;
      json["never_wrote"] = !ender.may_have_written;
      break;
    case model::EnderKind::kTimer: json["in_ms"] = ender.in_ms ? Json(*ender.in_ms) : Json(); [[fallthrough]];
    case model::EnderKind::kSignal:
    case model::EnderKind::kAnybody: json["what"] = ender.what; break;
    case model::EnderKind::kContinue: json["run"] = ender.what; break;
  }
  return json;
}

Json to_json(const model::Wait& wait) {
  const auto listed = std::span(wait.wakers).first(std::min(wait.wakers.size(), files::kMaxListedWakers));
  Json json = {{"tid", wait.tid},
               {"name", wait.name},
               {"kind", name_of(wait.kind)},
               {"object", wait.object},
               {"target_pid", wait.target_pid},
               {"has_timeout", wait.has_timeout},
               {"state", std::string(1, wait.state)},
               {"use", name_of(wait.use)},
               {"owner", wait.owner},
               {"path", wait.path},
               {"object_name", wait.object_name},
               {"wakers", array_of(listed, [](const model::Waker& waker) { return to_json(waker); })},
               {"stuck", wait.is_stuck}};
  if (listed.size() < wait.wakers.size()) json["wakers_left_out"] = wait.wakers.size() - listed.size();
  json["fd"] = wait.fd;
  json["call"] = wait.call;
  json["target"] = wait.target;
  json["for_ms"] = wait.for_ms ? Json(*wait.for_ms) : Json();
  json["could_end"] = Json();
  if (wait.are_enders_known)
    json["could_end"] = array_of(wait.enders, [](const auto& ender) { return to_json(ender); });
  json["stack"] = stack_to_json(wait.stack);
  json["stack_cut"] = wait.stack.cut;
  return json;
}

Json to_json(const model::Process& process, const model::Model& model) {
  Json json = process_to_json(process);
  json["world_size"] = process.world_size < 0 ? Json() : Json(process.world_size);
  json["liveness"] = name_of(process.liveness);
  json["stuck_for_ms"] = process.stuck_for_ms;
  json["exit_status"] = process.exit_status ? Json(*process.exit_status) : Json();
  json["waits_for"] = process.waits_for ? Json(model.processes[*process.waits_for].pid) : Json();
  json["waits_via"] = process.waits_via;
  if (!process.ways_out.empty()) json["ways_out"] = process.ways_out;
  json["waits"] = Json::array();  // add_waits() adds the waits to the text
  return json;
}

Json to_json(const model::Pool& pool) {
  return {{"kind", name_of(pool.kind)},
          {"library", pool.library},
          {"workers_before", pool.workers_before},
          {"workers_lost", pool.workers_lost},
          {"in_region", pool.in_region},
          {"rebuilds_itself", pool.rebuilds_itself},
          {"cure", pool.cure ? Json(name_of(*pool.cure)) : Json()},
          {"cure_result", pool.cure ? Json(name_of(pool.cure_result)) : Json()}};
}

Json to_json(const model::Cuda& cuda) {
  Json json = {{"library", cuda.library},
               {"version", cuda.version == 0 ? Json() : Json(cuda.version)},
               {"initialised", cuda.is_initialised},
               {"lost", cuda.was_lost},
               {"asked", cuda.asked},
               {"devices", cuda.devices < 0 ? Json() : Json(cuda.devices)},
               {"active_contexts", cuda.active_contexts},
               {"init", Json()}};
  if (cuda.init_tid != 0) {
    json["init"] = {{"tid", cuda.init_tid},
                    {"thread", cuda.init_thread},
                    {"way", name_of(cuda.init_way)},
                    {"stack", stack_to_json(cuda.init_stack)}};
  }
  return json;
}

Json to_json(const model::ThreadPool& pool) {
  const model::OwnerInfo& owner = model::info_of(pool.owner);
  return {{"owner", owner.key},
          {"library", pool.library},
          {"threads_before", pool.before},
          {"threads_after", pool.threads.size()},
          {"state", name_of(pool.state)}};
}

Json to_json(const model::HandlerTime& time, const model::Model& model) {
  constexpr const char* kPhases[] = {"prepare", "parent", "child"};
  const model::AtforkHandlers& handlers = model.handlers[time.handlers];
  Json json = {{"library", handlers.library}};
  for (std::size_t phase = 0; phase < std::size(kPhases); ++phase) {
    json[kPhases[phase]] = Json();
    if (!handlers.has[phase]) continue;
    json[kPhases[phase]] = {{"function", handlers.functions[phase]},
                            {"ns", time.ns[phase] ? Json(*time.ns[phase]) : Json()}};
  }
  return json;
}

Json to_json(const model::Fork& fork, const model::Model& model) {
  Json json = {{"pid", model.processes[fork.process].pid},
               {"child", fork.child ? Json(model.processes[*fork.child].pid) : Json()},
               {"tid", model.threads[fork.forking_thread].tid},
               {"time_ns", fork.time_ns},
               {"prepare_ns", fork.prepare_ns},
               {"total_ns", fork.total_ns},
               {"error", fork.error},
               {"lost_threads", fork.lost_threads.size() + fork.unknown_threads},
               {"held_locks", std::ranges::count_if(fork.held, [&](const model::Held& held) {
                  const model::LockKind kind = model.locks[held.lock].kind;
                  return kind != model::LockKind::kCondition && kind != model::LockKind::kBarrier;
                })}};
  json["threads_before"] = 1 + fork.lost_threads.size() + fork.unknown_threads + fork.ended_in_prepare.size();
  json["threads_after"] = 1 + fork.lost_threads.size() + fork.unknown_threads;
  json["thread_pools"] = array_of(fork.thread_pools, [](const auto& pool) { return to_json(pool); });
  json["handlers"] = array_of(fork.handlers, [&](const auto& time) { return to_json(time, model); });
  json["pools"] = array_of(fork.pools, [&](model::PoolId id) { return to_json(model.pools[id]); });
  json["cuda"] = fork.cuda ? to_json(*fork.cuda) : Json();
  json["stack"] = stack_to_json(fork.stack);
  return json;
}

constexpr std::string_view kNoWaits = "\"waits\": []";

// Appends the waits as the elements of a JSON array. In memory, the JSON values of one wait take ten times as much as
// their text. So with very many threads, the values of all waits together would take gigabytes.
void append_waits(const std::vector<model::Wait>& waits, std::string& text) {
  constexpr std::string_view kIndent = "\n        ";
  constexpr std::size_t kSample = 64;
  text += "[";
  const std::size_t begin = text.size();
  for (std::size_t i = 0; i < waits.size(); ++i) {
    text += i == 0 ? "" : ",";
    text += kIndent;
    const std::string wait = value_text(to_json(waits[i]));
    for (std::size_t at = 0; at < wait.size();) {
      const std::size_t end = std::min(wait.find('\n', at), wait.size());
      text.append(wait, at, end - at);
      if (end < wait.size()) text += kIndent;
      at = end + 1;
    }
    // A string that grows bit by bit is copied to memory that is twice as large. So the size of the whole text is
    // estimated from the first waits.
    if (i + 1 == kSample) text.reserve(text.size() + (text.size() - begin) / kSample * waits.size() * 5 / 4);
  }
  text += "\n      ]";
}

// Adds the waits of the processes to the text of the report. In `text`, each process has an empty list of waits.
std::string add_waits(std::string_view text, const std::vector<model::Process>& processes) {
  std::string all;
  for (const model::Process& process : processes) {
    // A quotation mark within a text is written as \", so no text contains kNoWaits.
    const std::size_t end = text.find(kNoWaits) + kNoWaits.size();
    all += text.substr(0, process.waits.empty() ? end : end - 2);
    if (!process.waits.empty()) append_waits(process.waits, all);
    text.remove_prefix(end);
  }
  all += text;
  return all;
}

}  // namespace

std::string render_json(const model::Model& model, const std::vector<Finding>& findings) {
  Json report = {{"schema", kReportSchema},
                 {"tool", {{"name", "forksight"}, {"version", FORKSIGHT_VERSION}}},
                 {"command", model.command}};
  report["processes"] = array_of(model.processes, [&](const auto& process) { return to_json(process, model); });
  report["forks"] = array_of(model.forks, [&](const auto& fork) { return to_json(fork, model); });
  report["findings"] =
      array_of(findings, [&](const auto& finding) { return finding_to_json(finding, model.processes); });
  report["limits"] = model.limits;
  return add_waits(document_text(report), model.processes);
}

}  // namespace forksight::render
