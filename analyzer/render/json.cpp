#include "render/json.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "files/budgets.hpp"
#include "forksight/version.hpp"
#include "render/findings_json.hpp"
#include "render/json_writer.hpp"
#include "render/names.hpp"

namespace forksight::render {

namespace {

template <class T>
void member_or_null(JsonWriter& out, std::string_view name, const std::optional<T>& value) {
  out.key(name);
  if (value) {
    out.value(*value);
  } else {
    out.null();
  }
}

template <class Items, class Write>
void array(JsonWriter& out, std::string_view name, const Items& items, Write write) {
  out.key(name);
  out.begin_array();
  for (const auto& item : items) write(item);
  out.end_array();
}

template <class Write>
void object(JsonWriter& out, const Write& write_members) {
  out.begin_object();
  write_members();
  out.end_object();
}

template <class T>
void values(JsonWriter& out, std::string_view name, const std::vector<T>& of_member) {
  array(out, name, of_member, [&](const T& value) { out.value(value); });
}

void stack(JsonWriter& out, const model::Stack& of_member) {
  out.key("stack");
  write_stack(out, of_member);
}

void write(JsonWriter& out, const model::Waker& waker) {
  object(out, [&] {
    out.member("pid", waker.pid);
    out.member("tid", waker.tid);
    out.member("fd", waker.fd);
    out.member("via", waker.via);
  });
}

void write_members(JsonWriter& out, const model::Ender& ender) {
  out.member("kind", name_of(ender.kind));
  switch (ender.kind) {
    case model::EnderKind::kProcess:
      out.member("pid", ender.pid);
      out.member("tid", ender.tid);
      out.member("fd", ender.fd);
      out.member("via", ender.via);
      out.member("command", ender.command);
      out.member("state", std::string_view(&ender.state, 1));
      out.member("frozen", ender.is_frozen);
      out.member("never_wrote", !ender.may_have_written);
      break;
    case model::EnderKind::kTimer: member_or_null(out, "in_ms", ender.in_ms); [[fallthrough]];
    case model::EnderKind::kSignal:
    case model::EnderKind::kAnybody: out.member("what", ender.what); break;
    case model::EnderKind::kContinue: out.member("run", ender.what); break;
  }
}

void write(JsonWriter& out, const model::Wait& wait) {
  const auto listed = std::span(wait.wakers).first(std::min(wait.wakers.size(), files::kMaxListedWakers));
  object(out, [&] {
    out.member("tid", wait.tid);
    out.member("name", wait.name);
    out.member("kind", name_of(wait.kind));
    out.member("object", wait.object);
    out.member("target_pid", wait.target_pid);
    out.member("has_timeout", wait.has_timeout);
    out.member("state", std::string_view(&wait.state, 1));
    out.member("use", name_of(wait.use));
    out.member("owner", wait.owner);
    out.member("path", wait.path);
    out.member("object_name", wait.object_name);
    array(out, "wakers", listed, [&](const model::Waker& waker) { write(out, waker); });
    out.member("stuck", wait.is_stuck);
    if (listed.size() < wait.wakers.size()) out.member("wakers_left_out", wait.wakers.size() - listed.size());
    out.member("fd", wait.fd);
    out.member("call", wait.call);
    out.member("target", wait.target);
    member_or_null(out, "for_ms", wait.for_ms);
    if (wait.are_enders_known) {
      array(out, "could_end", wait.enders,
            [&](const model::Ender& ender) { object(out, [&] { write_members(out, ender); }); });
    } else {
      out.key("could_end");
      out.null();
    }
    stack(out, wait.stack);
    out.member("stack_cut", wait.stack.cut);
  });
}

void write(JsonWriter& out, const model::Process& process, const model::Model& model) {
  object(out, [&] {
    write_process_members(out, process);
    member_or_null(out, "world_size", process.world_size < 0 ? std::nullopt : std::optional(process.world_size));
    out.member("liveness", name_of(process.liveness));
    out.member("stuck_for_ms", process.stuck_for_ms);
    member_or_null(out, "exit_status", process.exit_status);
    member_or_null(out, "waits_for",
                   process.waits_for ? std::optional(model.processes[*process.waits_for].pid) : std::nullopt);
    out.member("waits_via", process.waits_via);
    if (!process.ways_out.empty()) values(out, "ways_out", process.ways_out);
    array(out, "waits", process.waits, [&](const model::Wait& wait) { write(out, wait); });
  });
}

void write(JsonWriter& out, const model::Pool& pool) {
  object(out, [&] {
    out.member("kind", name_of(pool.kind));
    out.member("library", pool.library);
    out.member("workers_before", pool.workers_before);
    out.member("workers_lost", pool.workers_lost);
    out.member("in_region", pool.in_region);
    out.member("rebuilds_itself", pool.rebuilds_itself);
    member_or_null(out, "cure", pool.cure ? std::optional(name_of(*pool.cure)) : std::nullopt);
    member_or_null(out, "cure_result", pool.cure ? std::optional(name_of(pool.cure_result)) : std::nullopt);
  });
}

void write(JsonWriter& out, const model::Cuda& cuda) {
  object(out, [&] {
    out.member("library", cuda.library);
    member_or_null(out, "version", cuda.version == 0 ? std::nullopt : std::optional(cuda.version));
    out.member("initialised", cuda.is_initialised);
    out.member("lost", cuda.was_lost);
    out.member("asked", cuda.asked);
    member_or_null(out, "devices", cuda.devices < 0 ? std::nullopt : std::optional(cuda.devices));
    values(out, "active_contexts", cuda.active_contexts);
    out.key("init");
    if (cuda.init_tid == 0) {
      out.null();
    } else {
      object(out, [&] {
        out.member("tid", cuda.init_tid);
        out.member("thread", cuda.init_thread);
        out.member("way", name_of(cuda.init_way));
        stack(out, cuda.init_stack);
      });
    }
  });
}

void write(JsonWriter& out, const model::ThreadPool& pool) {
  const model::OwnerInfo& owner = model::info_of(pool.owner);
  object(out, [&] {
    out.member("owner", owner.key);
    out.member("library", pool.library);
    out.member("threads_before", pool.before);
    out.member("threads_after", pool.threads.size());
    out.member("state", name_of(pool.state));
  });
}

void write(JsonWriter& out, const model::HandlerTime& time, const model::Model& model) {
  constexpr const char* kPhases[] = {"prepare", "parent", "child"};
  const model::AtforkHandlers& handlers = model.handlers[time.handlers];
  object(out, [&] {
    out.member("library", handlers.library);
    for (std::size_t phase = 0; phase < std::size(kPhases); ++phase) {
      out.key(kPhases[phase]);
      if (!handlers.has[phase]) {
        out.null();
        continue;
      }
      object(out, [&] {
        out.member("function", handlers.functions[phase]);
        member_or_null(out, "ns", time.ns[phase]);
      });
    }
  });
}

void write(JsonWriter& out, const model::Fork& fork, const model::Model& model) {
  const auto held_locks = std::ranges::count_if(fork.held, [&](const model::Held& held) {
    const model::LockKind kind = model.locks[held.lock].kind;
    return kind != model::LockKind::kCondition && kind != model::LockKind::kBarrier;
  });
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  object(out, [&] {
    out.member("pid", model.processes[fork.process].pid);
    member_or_null(out, "child", fork.child ? std::optional(model.processes[*fork.child].pid) : std::nullopt);
    out.member("tid", model.threads[fork.forking_thread].tid);
    out.member("time_ns", fork.time_ns);
    out.member("prepare_ns", fork.prepare_ns);
    out.member("total_ns", fork.total_ns);
    out.member("error", fork.error);
    out.member("lost_threads", lost);
    out.member("held_locks", held_locks);
    out.member("threads_before", 1 + lost + fork.ended_in_prepare.size());
    out.member("threads_after", 1 + lost);
    array(out, "thread_pools", fork.thread_pools, [&](const model::ThreadPool& pool) { write(out, pool); });
    array(out, "handlers", fork.handlers, [&](const model::HandlerTime& time) { write(out, time, model); });
    array(out, "pools", fork.pools, [&](model::PoolId id) { write(out, model.pools[id]); });
    out.key("cuda");
    if (fork.cuda) {
      write(out, *fork.cuda);
    } else {
      out.null();
    }
    stack(out, fork.stack);
  });
}

void write(JsonWriter& out, const model::Model& model, const std::vector<Finding>& findings) {
  object(out, [&] {
    out.member("schema", kReportSchema);
    out.key("tool");
    object(out, [&] {
      out.member("name", "forksight");
      out.member("version", FORKSIGHT_VERSION);
    });
    values(out, "command", model.command);
    array(out, "processes", model.processes, [&](const model::Process& process) { write(out, process, model); });
    array(out, "forks", model.forks, [&](const model::Fork& fork) { write(out, fork, model); });
    array(out, "findings", findings, [&](const Finding& finding) { write_finding(out, finding, model.processes); });
    values(out, "limits", model.limits);
  });
}

}  // namespace

bool write_json(const model::Model& model, const std::vector<Finding>& findings, const Sink& sink) {
  JsonWriter out(sink);
  write(out, model, findings);
  return out.finish();
}

std::string render_json(const model::Model& model, const std::vector<Finding>& findings) {
  return json_text([&](JsonWriter& out) { write(out, model, findings); });
}

}  // namespace forksight::render
