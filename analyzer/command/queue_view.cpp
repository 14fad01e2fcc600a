#include "command/queue_view.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
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
    case snapshot::buffer_state::parked: return "parked";
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

struct Holding {
  std::uint32_t count = 0;
  std::uint64_t oldest_ms = 0;
};

// What each process holds, the longest held first.
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

}  // namespace

std::string queue_text(const snapshot& seen) {
  std::string text = fmt::format(
      "queue {}{}: {} of {} buffers free, {} queued, {} held, {} loaned{}; {} bytes each, {} slots\n", seen.id,
      seen.name.empty() ? "" : " (" + seen.name + ")", seen.free, seen.buffers, seen.queued, seen.held, seen.loaned,
      seen.parked != 0 ? fmt::format(", {} parked", seen.parked) : "", seen.buffer_bytes, seen.slots);
  if (seen.is_poisoned)
    text += fmt::format("  POISONED: offset {} holds a value that no operation writes\n", seen.poisoned_offset);
  if (seen.is_shut_down) text += "  shut down\n";
  for (const snapshot::participant& who : seen.participants) {
    text += fmt::format("  {} \"{}\" ({}): {}, sent {}, received {}{}\n", who.pid, who.name, life_of(who),
                        roles_of(who), who.sent, who.received, wait_of(who));
  }
  if (seen.participants.empty()) text += "  nobody takes part\n";
  text += holdings_of(seen);
  if (seen.recovered + seen.lost + seen.redelivered + seen.dropped != 0) {
    text += fmt::format(
        "  processes that died: {}; messages: {} lost with them, {} given to another, {} dropped for lack of room\n",
        seen.recovered, seen.lost, seen.redelivered, seen.dropped);
  }
  if (seen.parked != 0)
    text += "  parked messages: each consumer that got one died; look at what these messages contain\n";
  const auto dead = std::ranges::count(seen.participants, snapshot::life::dead, &snapshot::participant::lives);
  if (dead != 0)
    text += "  buffers of dead processes are recovered when a living process waits next, or calls recover()\n";
  return text;
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
                            {"waits_for", who.waits_for_message  ? "message"
                                          : who.waits_for_buffer ? "buffer"
                                          : who.waits_for_slot   ? "slot"
                                                                 : ""},
                            {"sent", who.sent},
                            {"received", who.received}});
  }
  for (const snapshot::buffer& buffer : seen.in_use) {
    buffers.push_back({{"index", buffer.index},
                       {"state", word_for(buffer.state)},
                       {"pid", buffer.pid},
                       {"deliveries", buffer.deliveries},
                       {"age_ms", buffer.age_ms}});
  }
  return {{"id", seen.id},
          {"name", seen.name},
          {"strategy", seen.st == ipc::strategy::named ? "named" : "memfd"},
          {"feed", seen.f == ipc::feed::thread ? "thread" : "direct"},
          {"on_death", seen.od == ipc::on_death::redeliver ? "redeliver" : "drop"},
          {"slots", seen.slots},
          {"buffers", seen.buffers},
          {"buffer_bytes", seen.buffer_bytes},
          {"segment_bytes", seen.segment_bytes},
          {"free", seen.free},
          {"queued", seen.queued},
          {"loaned", seen.loaned},
          {"held", seen.held},
          {"parked", seen.parked},
          {"dropped", seen.dropped},
          {"redelivered", seen.redelivered},
          {"lost", seen.lost},
          {"recovered", seen.recovered},
          {"high_water", seen.high_water},
          {"blocked_send_ms", seen.blocked_send_ms},
          {"blocked_receive_ms", seen.blocked_receive_ms},
          {"shut_down", seen.is_shut_down},
          {"poisoned", seen.is_poisoned},
          {"participants", std::move(participants)},
          {"in_use", std::move(buffers)}};
}

}  // namespace forksight
