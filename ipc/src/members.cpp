#include "members.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.hpp"
#include "process.hpp"
#include "waiting.hpp"

namespace forksight::ipc::detail {
namespace {

bool has_ended(int pidfd) {
  pollfd ask{pidfd, POLLIN, 0};
  // Readable once the last thread has ended, a zombie's too.
  return poll(&ask, 1, 0) == 1 && (ask.revents & POLLIN) != 0;
}

// `kept`: its pidfd, if it lives and one could be had.
life find_life(const identity& who, descriptor& kept) {
  descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0)));
  if (!pidfd) {
    if (errno == ESRCH) return life::dead;
    // No descriptor left, or a kernel before 5.3: a pid that nobody has is dead all the same.
    if (kill(static_cast<pid_t>(who.pid), 0) != 0 && errno == ESRCH) return life::dead;
    return life::unknown;
  }
  if (has_ended(pidfd.get())) return life::dead;
  // Whoever the descriptor is of has not ended yet; so what /proc says now is of the same process.
  const auto start = static_cast<std::uint32_t>(start_time_of(who.pid));
  // 0: /proc could not be read, by us or, when it joined, by that process: no descriptor was left.
  if (start != 0 && who.start != 0 && start != who.start) return life::dead;
  kept = std::move(pidfd);
  return life::alive;
}

}  // namespace

life life_of(const identity& who, std::uint64_t its_namespace) {
  if (its_namespace != 0 && its_namespace != own_pid_namespace()) return life::unknown;
  descriptor unused;
  return find_life(who, unused);
}

result<void> members::join(const ring& of, std::uint32_t roles) {
  ring_ = of;
  namespace_ = own_pid_namespace();
  self_.pid = static_cast<std::uint32_t>(getpid());
  self_.start = static_cast<std::uint32_t>(start_time_of(self_.pid));
  peers_.resize(of.participant_count);
  // A second round, after the dead have made room.
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < of.participant_count; ++i) {
      participant& entry = of.participants[i];
      std::uint64_t seen = entry.word.load();
      const identity before = identity::of(seen);
      if (before.state != entry_state::free) continue;
      self_.incarnation = before.incarnation;
      self_.state = entry_state::joining;
      if (!entry.word.exchange_if(seen, self_.bits())) continue;
      me_ = owner_id(i, self_.incarnation);
      entry.pid_namespace.store_relaxed(namespace_);
      entry.seen_ns.store_relaxed(coarse_ns());
      entry.roles.store_relaxed(roles);
      entry.sent.store_relaxed(0);
      entry.received.store_relaxed(0);
      const std::string name = own_name();
      std::memset(entry.name, 0, sizeof entry.name);
      std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof entry.name - 1));
      std::uint64_t joining = self_.bits();
      self_.state = entry_state::live;
      if (!entry.word.exchange_if(joining, self_.bits())) continue;  // taken for dead while joining: another entry
      if (roles != 0) (void)of.head->roles_seen.fetch_or(roles);
      return {};
    }
    sweep();
  }
  return failure(
      errc::no_participant,
      "queue: all %u places of its table are taken by live processes: create it with a larger max_participants, or "
      "close handles that are not used",
      of.participant_count);
}

void members::leave() {
  if (me_.is_nobody() || is_evicted()) return;
  participant& entry = this->entry();
  for (auto& kind : ring_.head->waiting) {
    (void)kind[index() / 64].fetch_and(~(std::uint64_t{1} << (index() % 64)));
  }
  const bool was_producer = (entry.roles.load() & kProducerRole) != 0;
  if (was_producer) ring_.head->last_producer.store_release(self_.pid);
  std::uint64_t seen = self_.bits();
  const identity free{0, 0, static_cast<std::uint8_t>(self_.incarnation + 1), entry_state::free};
  (void)entry.word.exchange_if(seen, free.bits());
  // Who waits for a message or for room may be waiting for us.
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake_all(ring_, kind);
}

void members::take_role(std::uint32_t role) {
  if ((entry().roles.load_relaxed() & role) != 0) return;
  (void)entry().roles.fetch_or(role);
  (void)ring_.head->roles_seen.fetch_or(role);
}

void members::drop_role(std::uint32_t role) {
  if ((entry().roles.load() & role) == 0) return;
  if (role == kProducerRole) ring_.head->last_producer.store_release(self_.pid);
  (void)entry().roles.fetch_and(~role);
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake_all(ring_, kind);
}

std::uint32_t members::count() const {
  std::uint32_t attached = 0;
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    if (identity::of(ring_.participants[i].word.load()).state == entry_state::live) ++attached;
  }
  return attached;
}

bool members::has(std::uint32_t role) const {
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    const participant& entry = ring_.participants[i];
    if (identity::of(entry.word.load()).state == entry_state::live && (entry.roles.load() & role) != 0) return true;
  }
  return false;
}

life members::look_at(std::uint32_t index, const identity& who) {
  const std::uint64_t its_namespace = ring_.participants[index].pid_namespace.load_relaxed();
  // One that is joining has written its pid, but perhaps not yet of which namespace. It owns nothing yet: if it was
  // taken for dead wrongly, it joins again.
  if (who.state == entry_state::live && its_namespace != namespace_) return life::unknown;
  peer& known = peers_[index];
  if (known.word == who.bits() && known.pidfd) return has_ended(known.pidfd.get()) ? life::dead : life::alive;
  known = {};
  descriptor pidfd;
  const life found = find_life(who, pidfd);
  if (found == life::alive) {
    known.word = who.bits();
    known.pidfd = std::move(pidfd);
  }
  return found;
}

void members::recover(std::uint32_t index, const identity& who) {
  recovered what;
  const bool freed = recovery::recover(ring_, index, who, coarse_ns(), what);
  header& head = *ring_.head;
  head.redelivered.count(what.requeued);
  head.lost.count(what.lost);
  head.parked.count(what.parked);
  if (freed) head.recovered.count(1);
  peers_[index] = {};
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake_all(ring_, kind);
}

std::uint32_t members::sweep() {
  if (sweeping_.test_and_set(std::memory_order_acquire)) return 0;  // pairs with clear()
  std::uint32_t dead = 0;
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    const identity who = identity::of(ring_.participants[i].word.load());
    if (who.state == entry_state::free) {
      if (peers_[i].pidfd) peers_[i] = {};
      continue;
    }
    if (who == self_) continue;
    if (look_at(i, who) != life::dead) continue;
    recover(i, who);
    ++dead;
  }
  if (!me_.is_nobody()) entry().seen_ns.store_relaxed(coarse_ns());
  sweeping_.clear(std::memory_order_release);  // pairs with test_and_set()
  return dead;
}

}  // namespace forksight::ipc::detail
