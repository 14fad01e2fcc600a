#include "command/queue_view.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace forksight {
namespace {

using ipc::snapshot;

const char* word_for(snapshot::life lives) {
  switch (lives) {
    case snapshot::life::alive: return "alive";
    case snapshot::life::dead: return "dead";
    case snapshot::life::unknown: return "unknown";
  }
  return "unknown";
}

const char* word_for(snapshot::buffer_state state) {
  switch (state) {
    case snapshot::buffer_state::free: return "free";
    case snapshot::buffer_state::loaned: return "loaned";
    case snapshot::buffer_state::queued: return "queued";
    case snapshot::buffer_state::held: return "held";
    case snapshot::buffer_state::returned: return "returned";
    case snapshot::buffer_state::parked: return "parked";
    case snapshot::buffer_state::withdrawn: return "withdrawn";
    case snapshot::buffer_state::corrupt: return "corrupt";
  }
  return "corrupt";
}

std::string life_of(const snapshot::participant& who) {
  if (who.lives == snapshot::life::unknown) return "not visible from here";
  if (who.lives == snapshot::life::dead) return "dead";
  return who.state == 0 ? "alive" : fmt::format("alive, state {}", who.state);
}

std::string roles_of(const snapshot::participant& who) {
  if (who.is_caretaker) return "looks after parked messages";
  if (who.is_producer && who.is_consumer) return "producer and consumer";
  return who.is_producer ? "producer" : who.is_consumer ? "consumer" : "neither sent nor received yet";
}

std::string wait_of(const snapshot::participant& who) {
  if (who.waits_for_message) return ", waits for a message";
  if (who.waits_for_buffer) return ", waits for a free buffer";
  if (who.waits_for_slot) return ", waits for a free slot";
  return "";
}

std::string seconds(std::uint64_t milliseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
}

// Returns a line such as "  producers: 3 expected, 1 there, 1 closed, 0 died, 1 has not come\n". Returns "" if the
// queue expects no number of producers or consumers and has no grace time.
std::string lifetimes_of(const snapshot& seen) {
  std::string text;
  const auto tell = [&](const char* name, const snapshot::role_counts& counts, bool snapshot::participant::*role) {
    if (counts.expected == 0 && seen.grace_ms == 0) return;
    const auto there = static_cast<std::uint32_t>(std::ranges::count(seen.participants, true, role));
    const std::uint32_t came = there + counts.closed + counts.died;
    const std::uint32_t missing = counts.expected > came ? counts.expected - came : 0;
    text += fmt::format("  {}: {}{} there, {} closed, {} died{}\n", name,
                        counts.expected != 0 ? fmt::format("{} expected, ", counts.expected) : "", there, counts.closed,
                        counts.died,
                        missing != 0 ? fmt::format(", {} {} not come", missing, missing == 1 ? "has" : "have") : "");
  };
  tell("producers", seen.producers, &snapshot::participant::is_producer);
  tell("consumers", seen.consumers, &snapshot::participant::is_consumer);
  if (seen.grace_ms != 0)
    text += fmt::format("  after the last one has ended, others may come for {}\n", seconds(seen.grace_ms));
  return text;
}

struct Holding {
  std::uint32_t count = 0;
  std::uint64_t oldest_ms = 0;
};

// Lists what each process holds. What has been held for the longest time comes first.
std::string holdings_of(const snapshot& seen) {
  std::map<std::pair<std::uint32_t, snapshot::buffer_state>, Holding> all;
  for (const snapshot::buffer& buffer : seen.in_use) {
    Holding& holding = all[{buffer.pid, buffer.state}];
    ++holding.count;
    holding.oldest_ms = std::max(holding.oldest_ms, buffer.age_ms);
  }
  std::vector<std::pair<std::pair<std::uint32_t, snapshot::buffer_state>, Holding>> sorted(all.begin(), all.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second.oldest_ms > b.second.oldest_ms; });
  std::string text;
  for (const auto& [whose, holding] : sorted) {
    text += fmt::format("  {} {}{}, for {} at most\n", holding.count, word_for(whose.second),
                        whose.first != 0 ? fmt::format(" by {}", whose.first) : "", seconds(holding.oldest_ms));
  }
  return text;
}

std::string join_pids(const std::vector<std::uint32_t>& pids) { return fmt::format("{}", fmt::join(pids, ", ")); }

std::string message_text(const snapshot::buffer& one) {
  std::string text = fmt::format("  message {}: {} from {}, {}", one.number, count_bytes(one.bytes), one.producer,
                                 count_deliveries(one.deliveries));
  if (!one.killed.empty()) text += fmt::format(", killed {}", join_pids(one.killed));
  if (one.state == snapshot::buffer_state::withdrawn) {
    return text + (one.pid != 0 ? fmt::format("; {} is taking it out\n", one.pid) : "; somebody is taking it out\n");
  }
  const std::string parker = one.parked_by != 0 ? fmt::format(" by {}", one.parked_by) : "";
  return text + fmt::format(", parked{} {} ago\n", parker, seconds(one.age_ms));
}

bool is_parked(const snapshot::buffer& one) {
  return one.state == snapshot::buffer_state::parked || one.state == snapshot::buffer_state::withdrawn;
}

nlohmann::json role_json(const snapshot::role_counts& counts) {
  return {{"expected", counts.expected}, {"closed", counts.closed}, {"died", counts.died}};
}

nlohmann::json buffer_json(const snapshot::buffer& one) {
  return {{"index", one.index},           {"state", word_for(one.state)}, {"pid", one.pid},
          {"deliveries", one.deliveries}, {"age_ms", one.age_ms},         {"bytes", one.bytes},
          {"producer", one.producer},     {"number", one.number},         {"parked_by", one.parked_by},
          {"killed", one.killed}};
}

}  // namespace

std::string count_messages(std::size_t count) { return fmt::format("{} message{}", count, count == 1 ? "" : "s"); }

std::string parked_text(const std::vector<snapshot>& queues) {
  std::string text;
  for (const snapshot& seen : queues) {
    text += fmt::format("queue {}{}: {} parked\n", seen.id, seen.name.empty() ? "" : " (" + seen.name + ")",
                        count_messages(seen.parked + seen.withdrawn));
    std::vector<snapshot::buffer> parked;
    std::ranges::copy_if(seen.in_use, std::back_inserter(parked), is_parked);
    // Message numbers wrap around. So the messages are sorted by the distance of their numbers from `least`. `least` is
    // the number of the first message minus half of the range.
    const std::uint32_t least = parked.empty() ? 0 : parked.front().number - 0x8000'0000;
    std::ranges::sort(parked, {}, [&](const snapshot::buffer& one) { return one.number - least; });
    for (const snapshot::buffer& one : parked) text += message_text(one);
  }
  return text;
}

std::string count_bytes(std::uint64_t count) { return fmt::format("{} byte{}", count, count == 1 ? "" : "s"); }

std::string count_deliveries(std::uint32_t count) {
  return count == 1 ? "delivered once" : fmt::format("delivered {} times", count);
}

std::string queue_text(const snapshot& seen) {
  std::string text =
      fmt::format("queue {}{}: {} of {} buffers free, {} queued, {} held, {} loaned{}{}; {} bytes each, {} slots\n",
                  seen.id, seen.name.empty() ? "" : " (" + seen.name + ")", seen.free, seen.buffers, seen.queued,
                  seen.held, seen.loaned, seen.returned != 0 ? fmt::format(", {} returned", seen.returned) : "",
                  seen.parked != 0 ? fmt::format(", {} parked", seen.parked) : "", seen.buffer_bytes, seen.slots);
  if (seen.is_poisoned)
    text += fmt::format(
        "  CORRUPT: offset {} has a value that no operation writes, so no process can use this queue any more\n",
        seen.poisoned_offset);
  if (seen.is_shut_down) text += "  shut down\n";
  for (const snapshot::participant& who : seen.participants) {
    text += fmt::format("  {} \"{}\" ({}): {}, sent {}, received {}{}\n", who.pid, who.name, life_of(who),
                        roles_of(who), who.sent, who.received, wait_of(who));
  }
  if (seen.participants.empty()) text += "  nobody takes part\n";
  text += lifetimes_of(seen);
  text += holdings_of(seen);
  if (seen.recovered + seen.lost + seen.redelivered + seen.dropped != 0) {
    text += fmt::format(
        "  processes that died: {}; messages: {} lost with them, {} returned for another consumer, {} dropped because "
        "the queue was full\n",
        seen.recovered, seen.lost, seen.redelivered, seen.dropped);
  }
  for (const snapshot::buffer& one : seen.in_use) {
    if (is_parked(one)) text += message_text(one);
  }
  const auto dead = std::ranges::count(seen.participants, snapshot::life::dead, &snapshot::participant::lives);
  if (dead != 0)
    text += "  buffers of dead processes are recovered when a living process waits next, or calls recover()\n";
  return text;
}

nlohmann::json parked_json(const snapshot& seen) {
  nlohmann::json messages = nlohmann::json::array();
  for (const snapshot::buffer& one : seen.in_use) {
    if (is_parked(one)) messages.push_back(buffer_json(one));
  }
  return {{"id", seen.id}, {"name", seen.name}, {"parked", std::move(messages)}};
}

nlohmann::json queue_json(const snapshot& seen) {
  nlohmann::json participants = nlohmann::json::array(), buffers = nlohmann::json::array();
  for (const snapshot::participant& who : seen.participants) {
    participants.push_back({{"pid", who.pid},
                            {"name", who.name},
                            {"lives", word_for(who.lives)},
                            {"state", who.state == 0 ? "" : std::string(1, who.state)},
                            {"producer", who.is_producer},
                            {"consumer", who.is_consumer},
                            {"caretaker", who.is_caretaker},
                            {"waits_for", who.waits_for_message  ? "message"
                                          : who.waits_for_buffer ? "buffer"
                                          : who.waits_for_slot   ? "slot"
                                                                 : ""},
                            {"sent", who.sent},
                            {"received", who.received}});
  }
  for (const snapshot::buffer& buffer : seen.in_use) {
    buffers.push_back(buffer_json(buffer));
  }
  return {{"id", seen.id},
          {"name", seen.name},
          {"strategy", seen.backing == ipc::strategy::named ? "named" : "memfd"},
          {"feed", seen.feeding == ipc::feed::thread ? "thread" : "direct"},
          {"on_death", seen.after_death == ipc::on_death::redeliver ? "redeliver" : "drop"},
          {"slots", seen.slots},
          {"buffers", seen.buffers},
          {"buffer_bytes", seen.buffer_bytes},
          {"segment_bytes", seen.segment_bytes},
          {"free", seen.free},
          {"queued", seen.queued},
          {"loaned", seen.loaned},
          {"held", seen.held},
          {"returned", seen.returned},
          {"parked", seen.parked},
          {"withdrawn", seen.withdrawn},
          {"dropped", seen.dropped},
          {"redelivered", seen.redelivered},
          {"lost", seen.lost},
          {"recovered", seen.recovered},
          {"high_water", seen.high_water},
          {"blocked_send_ms", seen.blocked_send_ms},
          {"blocked_receive_ms", seen.blocked_receive_ms},
          {"shut_down", seen.is_shut_down},
          {"poisoned", seen.is_poisoned},
          {"producers", role_json(seen.producers)},
          {"consumers", role_json(seen.consumers)},
          {"grace_ms", seen.grace_ms},
          {"participants", std::move(participants)},
          {"in_use", std::move(buffers)}};
}

}  // namespace forksight
