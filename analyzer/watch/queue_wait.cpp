#include "watch/queue_wait.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "files/dead_places.hpp"
#include "files/open_file.hpp"
#include "forksight/ipc/snapshot.hpp"
#include "proc/mappings.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::watch {
namespace {

using ipc::snapshot;

// Opens the queue's file through a descriptor of the process. Does not use the link of the mapping in
// /proc/PID/map_files, because few users may follow such a link.
std::optional<snapshot> open_queue(proc::DescriptorTables& tables, std::int32_t pid, const proc::Mapping& mapping) {
  const auto is_queue = [](std::string_view link) { return ipc::is_queue_file(link); };
  for (const proc::Descriptor& one : tables.find(pid, is_queue)) {
    const std::string path = proc::proc_path(one.tid, fmt::format("fd/{}", one.fd));
    struct stat about {};
    if (files::stat_living(path, about) != 0 || about.st_ino != mapping.inode) continue;
    const files::Descriptor file = files::open_regular(path);
    if (!file) continue;
    auto seen = ipc::inspect(file.get(), proc::caller());
    if (seen) return std::move(seen).value();
  }
  return std::nullopt;
}

std::string name_participant(const snapshot::participant& who) {
  std::string text = fmt::format("process {} \"{}\"", who.pid, who.name);
  if (who.lives == snapshot::life::dead) return text + " (dead)";
  return who.state == 0 ? text : fmt::format("{} (alive, state {})", text, who.state);
}

std::string name_pid(const snapshot& queue, std::uint32_t pid) {
  const auto who = std::ranges::find(queue.participants, pid, &snapshot::participant::pid);
  return who == queue.participants.end() ? fmt::format("process {}, which is gone", pid) : name_participant(*who);
}

std::string list_participants(const snapshot& queue, bool snapshot::participant::*role, std::uint32_t but_not) {
  std::string text;
  for (const snapshot::participant& who : queue.participants) {
    if (!(who.*role) || who.pid == but_not) continue;
    text += (text.empty() ? "" : ", ") + name_participant(who);
  }
  return text;
}

// Describes the process that holds the most buffers: "4 held by process 812 \"worker\" (alive, state T) for 41.0 s".
// Returns "" if no process holds a buffer.
std::string name_holder(const snapshot& queue) {
  struct Held {
    std::uint32_t count = 0;
    std::uint64_t oldest_ms = 0;
  };
  std::map<std::uint32_t, Held> held;
  for (const snapshot::buffer& buffer : queue.in_use) {
    if (buffer.state != snapshot::buffer_state::held && buffer.state != snapshot::buffer_state::loaned) continue;
    Held& of = held[buffer.pid];
    ++of.count;
    of.oldest_ms = std::max(of.oldest_ms, buffer.age_ms);
  }
  const auto most = std::ranges::max_element(held, {}, [](const auto& one) { return one.second.count; });
  if (most == held.end()) return {};
  return fmt::format("{} held by {} for {:.1f} s", most->second.count, name_pid(queue, most->first),
                     static_cast<double>(most->second.oldest_ms) / 1000);
}

// One of the two roles in a queue, producer or consumer. A member of the role might end the wait. The struct also has
// the phrases that describe the role in a report.
struct Role {
  bool snapshot::participant::*has;
  const snapshot::role_counts& counts;
  const char* name;       // "producer"
  const char* done_by;    // "sent by"
  const char* by_nobody;  // "no other process has sent one"
};

// Describes the processes that have the role, and those that are missing: "sent by process 812 \"loader\" (alive, state
// S); 2 of 3 expected producers have not come yet". Leaves out the process `waiter`. `is_only_hope`: only a member of
// this role can end the wait.
std::string describe_role(const snapshot& queue, const Role& role, std::uint32_t waiter, bool is_only_hope) {
  const snapshot::role_counts& counts = role.counts;
  const auto there = static_cast<std::uint32_t>(std::ranges::count(queue.participants, true, role.has));
  const std::uint32_t ended = counts.closed + counts.died;
  const std::string others = list_participants(queue, role.has, waiter);
  std::string text;
  if (!others.empty()) {
    text = fmt::format("{} {}", role.done_by, others);
  } else if (ended == 0) {
    text = role.by_nobody;
  } else {
    text = fmt::format("no {}{} is left: {} closed, {} died", there == 0 ? "" : "other ", role.name,
                       counts.closed, counts.died);
  }
  if (counts.expected > ended + there) {
    const std::uint32_t missing = counts.expected - ended - there;
    const std::string which =
        fmt::format("{} of {} expected {}{}", missing, counts.expected, role.name, counts.expected == 1 ? "" : "s");
    if (there == 0 && is_only_hope) return fmt::format("{}; the thread waits for {} to come", text, which);
    return fmt::format("{}; {} {} not come yet", text, which, missing == 1 ? "has" : "have");
  }
  const bool all_closed = counts.expected != 0 && counts.closed >= counts.expected;
  if (there == 0 && ended != 0 && queue.grace_ms != 0 && !all_closed) {
    text += fmt::format("; the thread waits for another one to come, for {:.1f} s at most",
                        static_cast<double>(queue.grace_ms) / 1000);
  }
  return text;
}

}  // namespace

std::string describe_queue_wait(const files::Reader& /*reader*/, proc::DescriptorTables& tables, std::int32_t pid,
                                std::int32_t tid, std::uint64_t word) {
  const std::vector<proc::Mapping> mappings = proc::read_mappings(tid);
  const proc::Mapping* const mapping = proc::find_mapping(mappings, word);
  if (mapping == nullptr || !mapping->shared || !ipc::is_queue_file(mapping->path)) return {};
  const auto queue = open_queue(tables, pid, *mapping);
  if (!queue) return {};
  const std::string name = fmt::format("queue {}", queue->id.substr(0, 8));
  const auto me = std::ranges::find(queue->participants, static_cast<std::uint32_t>(pid), &snapshot::participant::pid);
  const bool wants_room = me != queue->participants.end() && (me->waits_for_buffer || me->waits_for_slot);
  const auto waiter = static_cast<std::uint32_t>(pid);
  if (!wants_room) {
    const Role producers{&snapshot::participant::is_producer, queue->producers, "producer", "sent by",
                         "no other process has sent one"};
    // If somebody holds a message, the message may return to the queue and end the wait. If there is no such message,
    // only a producer can end the wait.
    const bool is_empty = queue->queued == 0 && queue->held == 0 && queue->returned == 0;
    return fmt::format("a message of {}, {} queued; {}", name, queue->queued,
                       describe_role(*queue, producers, waiter, is_empty));
  }
  const std::string holder = name_holder(*queue);
  const Role consumers{&snapshot::participant::is_consumer, queue->consumers, "consumer", "received by",
                       "no other process receives"};
  return fmt::format("{} of {}, {} queued{}; {}", me->waits_for_buffer ? "a free buffer" : "a free slot", name,
                     queue->queued, holder.empty() ? "" : ", " + holder,
                     describe_role(*queue, consumers, waiter, holder.empty()));
}

}  // namespace forksight::watch
