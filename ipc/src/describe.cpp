// Describes a segment. take_snapshot() returns numbers, for inspect(). The other functions return words, which become
// part of the text of an error, for example of a timeout.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "core.hpp"
#include "failure.hpp"
#include "names.hpp"
#include "process.hpp"

namespace forksight::ipc {
namespace detail {
namespace {

std::uint64_t age_ms(std::uint64_t since_ns, std::uint64_t now_ns) {
  return now_ns > since_ns ? (now_ns - since_ns) / 1'000'000 : 0;
}

std::string seconds(std::uint64_t milliseconds) {
  std::array<char, 32> text{};
  if (milliseconds < 10'000) {
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(milliseconds) / 1000);
  } else {
    std::snprintf(text.data(), text.size(), "%llu s", static_cast<unsigned long long>(milliseconds / 1000));
  }
  return text.data();
}

snapshot::life public_state(member_state seen) {
  return seen == member_state::alive  ? snapshot::life::alive
         : seen == member_state::dead ? snapshot::life::dead
                                      : snapshot::life::unknown;
}

std::string words_for(const snapshot::participant& who) {
  std::string text = "pid " + std::to_string(who.pid);
  if (who.is_of_other_namespace) text += " of another pid namespace";
  if (who.is_of_unknown_namespace) text += ", perhaps of another pid namespace";
  switch (who.lives) {
    case snapshot::life::dead: return text + " (dead";
    case snapshot::life::unknown:
      return text + (who.has_lock ? " (this process cannot see whether it lives"
                                  : " (it has no lock that shows whether it lives");
    case snapshot::life::alive: break;
  }
  text += " (alive";
  if (who.state != 0) text += std::string(", state ") + who.state;
  return text;
}

snapshot::participant participant_at(const ring& of, std::uint32_t index) {
  const participant& entry = of.participants[index];
  const identity who = identity::of(entry.word.load());
  snapshot::participant seen;
  seen.index = index;
  if (who.state == entry_state::free) return seen;
  seen.pid = who.pid;
  seen.lives = public_state(member_state_of(of.lives, index, who));
  seen.has_lock = who.has_lock;
  // The state is looked up by the pid, which is valid only in its own pid namespace.
  const std::uint64_t its_namespace = entry.pid_namespace.load();
  const std::uint64_t own_namespace = own_pid_namespace();
  seen.is_of_unknown_namespace = its_namespace == 0 || own_namespace == 0;
  seen.is_of_other_namespace = !seen.is_of_unknown_namespace && its_namespace != own_namespace;
  const bool is_its_pid_ours = !seen.is_of_unknown_namespace && !seen.is_of_other_namespace;
  if (seen.lives == snapshot::life::alive && is_its_pid_ours) seen.state = state_of(who.pid);
  const role_word roles = role_word::of(entry.roles.load());
  seen.is_producer = roles.has(kProducerRole);
  seen.is_consumer = roles.has(kConsumerRole);
  seen.is_caretaker = roles.has(kCaretakerRole);
  const auto waits = [&](wait_kind kind) {
    return (of.head->waiting[static_cast<std::size_t>(kind)][index / 64].load() >> (index % 64) & 1) != 0;
  };
  seen.waits_for_message = waits(wait_kind::message);
  seen.waits_for_slot = waits(wait_kind::slot);
  seen.waits_for_buffer = waits(wait_kind::buffer);
  seen.sent = entry.sent.load();
  seen.received = entry.received.load();
  std::array<char, sizeof entry.name + 1> name{};
  for (std::size_t i = 0; i < sizeof entry.name && entry.name[i] != 0; ++i) {
    const char letter = entry.name[i];
    name[i] = letter >= ' ' && letter <= '~' ? letter : '?';
  }
  seen.name = name.data();
  return seen;
}

snapshot::buffer_state public_state(buffer_state state) {
  switch (state) {
    case buffer_state::free: return snapshot::buffer_state::free;
    case buffer_state::loaned: return snapshot::buffer_state::loaned;
    case buffer_state::queued: return snapshot::buffer_state::queued;
    case buffer_state::held: return snapshot::buffer_state::held;
    case buffer_state::returned: return snapshot::buffer_state::returned;
    case buffer_state::parked: return snapshot::buffer_state::parked;
    case buffer_state::withdrawn: return snapshot::buffer_state::withdrawn;
  }
  return snapshot::buffer_state::corrupt;
}

// Returns the pid of the participant `owner`. Returns 0 if `owner` is nobody, or if this participant is gone.
std::uint32_t pid_of(const ring& of, owner_id owner) {
  if (owner.is_nobody() || owner.index() >= of.participant_count) return 0;
  const identity who = identity::of(of.participants[owner.index()].word.load());
  return who.state != entry_state::free && who.incarnation == owner.incarnation() ? who.pid : 0;
}

void tell_message(const buffer& entry, buffer_word word, snapshot::buffer& told) {
  told.bytes = entry.length.load_relaxed();
  told.producer = entry.producer.load_relaxed();
  told.number = word.seq;
  if (told.deliveries == 0) return;
  // All consumers except that of the last delivery have died. The consumer of the last delivery still has the message,
  // has parked it, or has died, too.
  const std::uint32_t last = entry.consumers[(told.deliveries - 1) % kRememberedConsumers].load_relaxed();
  const std::uint32_t parker = entry.parked_by.load_relaxed();
  if (parker == last && word.state != buffer_state::held) told.parked_by = parker;
  const std::uint32_t died = told.deliveries - (word.state == buffer_state::held || told.parked_by != 0 ? 1 : 0);
  const std::uint32_t first = told.deliveries > kRememberedConsumers ? told.deliveries - kRememberedConsumers : 0;
  for (std::uint32_t i = first; i < died; ++i) {
    told.killed.push_back(entry.consumers[i % kRememberedConsumers].load_relaxed());
  }
}

struct holding {
  std::uint32_t count = 0;
  std::uint64_t oldest_ms = 0;
};

}  // namespace

std::string describe_buffers(const ring& of) {
  const std::uint64_t now = coarse_ns();
  std::map<std::uint16_t, holding> loaned, held, withdrawn;
  std::uint32_t queued = 0, returned = 0, parked = 0, free = 0;
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    const buffer_word word = buffer_word::of(of.buffers[i].word.load());
    const auto add = [&](std::map<std::uint16_t, holding>& to) {
      holding& of_owner = to[word.owner.bits()];
      ++of_owner.count;
      of_owner.oldest_ms = std::max(of_owner.oldest_ms, age_ms(of.buffers[i].since_ns.load_relaxed(), now));
    };
    switch (word.state) {
      case buffer_state::loaned: add(loaned); break;
      case buffer_state::held: add(held); break;
      case buffer_state::withdrawn: add(withdrawn); break;
      case buffer_state::queued: ++queued; break;
      case buffer_state::returned: ++returned; break;
      case buffer_state::parked: ++parked; break;
      case buffer_state::free: ++free; break;
    }
  }
  std::string text;
  const auto tell = [&](const std::map<std::uint16_t, holding>& all, const char* state) {
    for (const auto& [bits, of_owner] : all) {
      const owner_id owner(bits);
      if (!text.empty()) text += ", ";
      text += std::to_string(of_owner.count) + " " + state + " by ";
      const bool is_there = pid_of(of, owner) != 0;
      if (is_there) {
        const snapshot::participant seen = participant_at(of, owner.index());
        text += words_for(seen) + ", " + seconds(of_owner.oldest_ms) + ")";
      } else {
        text += "a process that is gone";
      }
    }
    if (all.empty()) text += std::string(text.empty() ? "" : ", ") + "0 " + state;
  };
  tell(held, "HELD");
  text += ", " + std::to_string(queued) + " QUEUED";
  tell(loaned, "LOANED");
  if (returned != 0) text += ", " + std::to_string(returned) + " RETURNED";
  if (!withdrawn.empty()) tell(withdrawn, "WITHDRAWN");
  if (parked != 0) text += ", " + std::to_string(parked) + " PARKED";
  return text + ", " + std::to_string(free) + " FREE";
}

std::string describe_participants(const ring& of, std::uint32_t role) {
  std::string text;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < of.participant_count; ++i) {
    const snapshot::participant seen = participant_at(of, i);
    if (seen.pid == 0 || !(role == kProducerRole ? seen.is_producer : seen.is_consumer)) continue;
    ++count;
    if (count > 4) continue;
    text += (text.empty() ? ": " : ", ") + words_for(seen) + ")";
  }
  const char* const what = role == kProducerRole ? "producer" : "consumer";
  if (count == 0) return std::string("no ") + what;
  if (count > 4) text += ", ...";
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s") + text;
}

std::string describe_role(const ring& of, const geometry& shape, std::uint32_t role) {
  const std::uint32_t expected = role == kProducerRole ? shape.expected_producers : shape.expected_consumers;
  std::string text = describe_participants(of, role);
  if (expected == 0) return text;
  std::uint32_t there = 0;
  for (std::uint32_t i = 0; i < of.participant_count; ++i) {
    const participant& entry = of.participants[i];
    const bool is_there = identity::of(entry.word.load()).state == entry_state::live;
    if (is_there && role_word::of(entry.roles.load()).has(role)) ++there;
  }
  return text + "; " + describe_expected(role, expected, count_ended(of, role), there);
}

snapshot take_snapshot(const ring& of, const geometry& shape, const std::string& name) {
  snapshot seen;
  std::array<char, 40> id{};
  std::snprintf(id.data(), id.size(), "%016llx%016llx", static_cast<unsigned long long>(shape.id[0]),
                static_cast<unsigned long long>(shape.id[1]));
  seen.id = id.data();
  seen.name = name;
  seen.backing = static_cast<strategy>(shape.strategy);
  seen.feeding = static_cast<feed>(shape.feed);
  seen.after_death = static_cast<on_death>(shape.on_death);
  seen.when_full = static_cast<full>(shape.full);
  seen.slots = shape.slots;
  seen.buffers = shape.buffers;
  seen.max_participants = shape.participants;
  seen.buffer_bytes = shape.buffer_bytes;
  seen.segment_bytes = shape.bytes;
  seen.payload_inode = shape.payload_inode;
  seen.holds_references = shape.holds_references != 0;
  const ended_members producers = count_ended(of, kProducerRole), consumers = count_ended(of, kConsumerRole);
  seen.producers = {shape.expected_producers, producers.closed, producers.died};
  seen.consumers = {shape.expected_consumers, consumers.closed, consumers.died};
  seen.grace_ms = shape.grace_ms;
  for (std::uint32_t i = 0; i < of.participant_count; ++i) {
    snapshot::participant who = participant_at(of, i);
    if (who.pid != 0) seen.participants.push_back(std::move(who));
  }
  const std::uint64_t now = coarse_ns();
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    const buffer& entry = of.buffers[i];
    const buffer_word word = buffer_word::of(entry.word.load());
    const snapshot::buffer_state state = public_state(word.state);
    switch (state) {
      case snapshot::buffer_state::free: ++seen.free; continue;
      case snapshot::buffer_state::loaned: ++seen.loaned; break;
      case snapshot::buffer_state::queued: ++seen.queued; break;
      case snapshot::buffer_state::held: ++seen.held; break;
      case snapshot::buffer_state::returned: ++seen.returned; break;
      case snapshot::buffer_state::parked: ++seen.parked; break;
      case snapshot::buffer_state::withdrawn: ++seen.withdrawn; break;
      case snapshot::buffer_state::corrupt: break;
    }
    snapshot::buffer one;
    one.index = i;
    one.state = state;
    one.pid = pid_of(of, word.owner);
    one.deliveries = entry.deliveries.load_relaxed();
    one.age_ms = age_ms(entry.since_ns.load_relaxed(), now);
    if (state != snapshot::buffer_state::loaned) tell_message(entry, word, one);
    seen.in_use.push_back(std::move(one));
  }
  const header& head = *of.head;
  seen.dropped = head.dropped.peek();
  seen.redelivered = head.redelivered.peek();
  seen.lost = head.lost.peek();
  seen.recovered = head.recovered.peek();
  const std::uint32_t now_queued = head.tail.peek() - head.head.peek();
  seen.high_water = std::max<std::uint64_t>(head.high_water.peek(), now_queued <= of.slot_count ? now_queued : 0);
  seen.blocked_send_ms = head.blocked_send_ns.peek() / 1'000'000;
  seen.blocked_receive_ms = head.blocked_receive_ns.peek() / 1'000'000;
  seen.is_shut_down = (head.status.load() & kShutdown) != 0;
  const std::uint64_t poisoned = head.poisoned.load();
  seen.is_poisoned = poisoned != 0;
  seen.poisoned_offset = poisoned != 0 ? poisoned - 1 : 0;
  return seen;
}

}  // namespace detail

namespace {

result<snapshot> inspect_file(result<detail::descriptor> file, uid_t user) {
  if (!file) return file.error();
  auto memory = detail::segment::open_to_read(std::move(file).value(), user);
  if (!memory) return memory.error();
  return detail::take_snapshot(memory->view(), memory->shape(), memory->name());
}

}  // namespace

bool is_queue_file(std::string_view path) {
  return path.starts_with("/memfd:forksight-queue") || path.starts_with("/dev/shm/forksight-");
}

bool begins_as_queue(int fd) { return detail::begins_as_queue(fd); }

result<snapshot> inspect(int fd) { return inspect(fd, geteuid()); }

result<snapshot> inspect(int fd, std::uint32_t user) { return inspect_file(detail::segment::copy_of(fd), user); }

result<snapshot> inspect(const std::string& name) {
  return inspect_file(detail::segment::find_named(name, O_RDONLY), geteuid());
}

}  // namespace forksight::ipc
