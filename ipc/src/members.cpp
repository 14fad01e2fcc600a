#include "members.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "failure.hpp"
#include "process.hpp"
#include "waiting.hpp"

namespace forksight::ipc::detail {
namespace {

constexpr std::uint64_t kMostWaitForPlaceNs = 1'000'000'000;
constexpr wait_kind kAllKinds[] = {wait_kind::message, wait_kind::slot, wait_kind::buffer};

// Lets only one thread sweep at a time. The destructor clears the flag.
class only_one {
 public:
  explicit only_one(std::atomic_flag& flag)
      : flag_(flag), is_it_(!flag.test_and_set(std::memory_order_acquire)) {}  // pairs with clear()
  only_one(const only_one&) = delete;
  only_one& operator=(const only_one&) = delete;
  ~only_one() {
    if (is_it_) flag_.clear(std::memory_order_release);  // pairs with test_and_set()
  }
  explicit operator bool() const { return is_it_; }

 private:
  std::atomic_flag& flag_;
  bool is_it_;
};

}  // namespace

member_state member_state_of(const member_lock_view& seen, std::uint32_t index, const identity& who) {
  if (!who.has_lock || !seen.can_tell()) return member_state::unknown;
  return seen.of(index);
}

result<void> members::join(const ring& of, std::uint32_t roles, int segment, const std::string& name) {
  ring_ = of;
  self_.pid = static_cast<std::uint32_t>(getpid());
  self_.nonce = static_cast<std::uint32_t>(monotonic_ns() >> 6) & 0x7fffffff;
  const std::uint64_t end_ns = monotonic_ns() + kMostWaitForPlaceNs;
  for (;;) {
    auto joined = try_to_join(roles, segment, name);
    if (joined || joined.error().code != errc::no_participant) return joined;
    if (monotonic_ns() >= end_ns || !will_place_be_free()) return joined;
    // No member_lock exists here, so other threads can fork meanwhile.
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

result<void> members::try_to_join(std::uint32_t roles, int segment, const std::string& name) {
  member_lock lock;
  if (auto opened = lock.open(segment, name); !opened) return opened;
  self_.has_lock = lock.is_open();
  if (auto taken = take_place(roles, lock); !taken) return taken;
  auto page = lock.keep();
  if (!page) {
    leave();
    return page.error();
  }
  lock_page_ = *page;
  return {};
}

result<void> members::take_place(std::uint32_t roles, const member_lock& lock) {
  // If no entry is free, recovers dead members and tries a second round.
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
      participant& entry = ring_.participants[i];
      std::uint64_t seen = entry.word.load();
      const identity before = identity::of(seen);
      if (before.state != entry_state::free) continue;
      // The lock is taken before the word names this member. In the other order, the word would for a moment name a
      // member that does not hold the lock, and others would take this member for dead.
      if (lock.is_open()) {
        const auto taken = lock.take(i);
        if (!taken) return taken.error();
        if (!taken.value()) continue;
      }
      self_.incarnation = before.incarnation;
      self_.state = entry_state::joining;
      if (!entry.word.exchange_if(seen, self_.bits())) {
        if (lock.is_open()) lock.give_back(i);
        continue;
      }
      me_ = owner_id(i, self_.incarnation);
      entry.pid_namespace.store_relaxed(own_pid_namespace());
      begin_roles(roles);
      entry.sent.store_relaxed(0);
      entry.received.store_relaxed(0);
      const std::string name = own_name();
      std::memset(entry.name, 0, sizeof entry.name);
      std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof entry.name - 1));
      std::uint64_t joining = self_.bits();
      self_.state = entry_state::live;
      // The exchange fails if another member has changed the word meanwhile.
      if (!entry.word.exchange_if(joining, self_.bits())) continue;
      for (const std::uint32_t role : {kProducerRole, kConsumerRole}) {
        if ((roles & role) != 0) (void)ring_.head->came[index_of(role)].fetch_add(1);
      }
      return {};
    }
    sweep();
  }
  return failure(errc::no_participant,
                 "queue: max_participants is %u, and that many handles are attached already, by %s: create the queue "
                 "with a larger "
                 "max_participants, or close handles that are not used",
                 ring_.participant_count, describe_takers().c_str());
}

// A process that has ended keeps its lock as long as another process reads its memory (member_lock.hpp). A member that
// leaves frees its entry before it releases the lock. What /proc says about a pid only decides whether this process
// waits. It never decides whether a member is dead.
bool members::will_place_be_free() const {
  const std::uint64_t own_namespace = own_pid_namespace();
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    const participant& entry = ring_.participants[i];
    const identity who = identity::of(entry.word.load());
    if (who.state == entry_state::free) return true;
    const member_state state = member_state_of(ring_.lives, i, who);
    if (state == member_state::dead) return true;
    const bool is_its_pid_ours = own_namespace != 0 && entry.pid_namespace.load() == own_namespace;
    if (state == member_state::alive && is_its_pid_ours && seems_to_have_ended(who.pid)) return true;
  }
  return false;
}

std::string members::describe_takers() const {
  std::uint32_t unknown = 0;
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    const identity who = identity::of(ring_.participants[i].word.load());
    if (who.state != entry_state::free && member_state_of(ring_.lives, i, who) == member_state::unknown) ++unknown;
  }
  if (unknown == 0) return "live processes";
  return "live processes, and by processes that may be dead, because nothing shows whether they live (" +
         std::to_string(unknown) + (unknown == 1 ? " handle)" : " handles)");
}

void members::leave() {
  if (me_.is_nobody()) return;
  if (is_evicted()) {
    member_lock::end(std::exchange(lock_page_, nullptr));
    return;
  }
  participant& entry = this->entry();
  for (auto& kind : ring_.head->waiting) {
    (void)kind[index() / 64].fetch_and(~(std::uint64_t{1} << (index() % 64)));
  }
  if (index() == kCreatorIndex && self_.incarnation == 0) {
    std::uint64_t none = 0;
    (void)ring_.head->creator.exchange_if(none, self_.pid);
  }
  (void)end_roles(kProducerRole | kConsumerRole | kCaretakerRole);
  std::uint64_t seen = self_.bits();
  const identity free{0, 0, static_cast<std::uint8_t>(self_.incarnation + 1), entry_state::free};
  (void)entry.word.exchange_if(seen, free.bits());
  member_lock::end(std::exchange(lock_page_, nullptr));
  // Other members may be waiting for a message or for room that only this member could have given.
  for (const wait_kind kind : kAllKinds) wake_all(ring_, kind);
}

// This member owns the entry already. Others ignore its roles until the entry is live.
void members::begin_roles(std::uint32_t roles) {
  for (std::uint64_t seen = entry().roles.load();;) {
    role_word word = role_word::of(seen);
    word.roles = roles;
    word.incarnation = self_.incarnation;
    if (entry().roles.exchange_if(seen, word.bits())) return;
  }
}

// Returns false if this member had none of these roles.
bool members::end_roles(std::uint32_t roles) {
  for (std::uint64_t seen = entry().roles.load();;) {
    const role_word word = role_word::of(seen);
    // After an eviction the entry may belong to another member.
    if (!word.has(roles) || word.incarnation != self_.incarnation) return false;
    if ((word.roles & roles & kProducerRole) != 0) ring_.head->last_producer.store_release(self_.pid);
    if (entry().roles.exchange_if(seen, word.without(roles, false).bits())) return true;
  }
}

void members::take_role(std::uint32_t role) {
  if (role_word::of(entry().roles.load_relaxed()).has(role)) return;
  for (std::uint64_t seen = entry().roles.load();;) {
    role_word word = role_word::of(seen);
    if (word.has(role) || word.incarnation != self_.incarnation) return;
    word.roles |= role;
    if (entry().roles.exchange_if(seen, word.bits())) break;
  }
  (void)ring_.head->came[index_of(role)].fetch_add(1);
}

void members::drop_role(std::uint32_t role) {
  if (!end_roles(role)) return;
  for (const wait_kind kind : kAllKinds) wake_all(ring_, kind);
}

ended_members count_ended(const ring& of, std::uint32_t role) {
  ended_members all;
  for (std::uint32_t i = 0; i < of.participant_count; ++i) {
    const role_word word = role_word::of(of.participants[i].roles.load());
    all.closed += word.closed[index_of(role)];
    all.died += word.died[index_of(role)];
  }
  return all;
}

std::uint32_t members::count_users() const {
  std::uint32_t attached = 0;
  for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
    const participant& entry = ring_.participants[i];
    const bool is_there = identity::of(entry.word.load()).state == entry_state::live;
    if (is_there && !role_word::of(entry.roles.load()).has(kCaretakerRole)) ++attached;
  }
  return attached;
}

// The member that had the role at the last call usually still has it, and is checked first. So the cost does not grow
// with the number of members. During the loop, a member may take the role in an entry that was already checked, and
// another member may end before its entry is checked. The loop then finds neither of the two, although some member had
// the role all the time. So if `came` has changed meanwhile, all entries are checked again.
bool members::has(std::uint32_t role) {
  const auto has_it = [&](std::uint32_t index) {
    const participant& entry = ring_.participants[index];
    return identity::of(entry.word.load()).state == entry_state::live && role_word::of(entry.roles.load()).has(role);
  };
  std::atomic<std::uint32_t>& last = had_role_[index_of(role)];
  if (has_it(last.load(std::memory_order_relaxed))) return true;
  const shared_word<std::uint64_t>& came = ring_.head->came[index_of(role)];
  for (std::uint64_t before = came.load();;) {
    for (std::uint32_t i = 0; i < ring_.participant_count; ++i) {
      if (!has_it(i)) continue;
      last.store(i, std::memory_order_relaxed);
      return true;
    }
    if (const std::uint64_t after = came.load(); std::exchange(before, after) == after) return false;
  }
}

void members::recover(std::uint32_t index, const identity& who) {
  recovered what;
  const bool freed = recovery::recover(ring_, index, who, coarse_ns(), what);
  header& head = *ring_.head;
  head.redelivered.count(what.requeued);
  head.lost.count(what.lost);
  head.parked.count(what.parked);
  if (freed) head.recovered.count(1);
  for (const wait_kind kind : kAllKinds) wake_all(ring_, kind);
}

// Returns 1 if the member was dead. The word is read before the lock is examined. If the member leaves in between, its
// word changes, and recover() with the old word does nothing.
std::uint32_t members::look_at(std::uint32_t index, bool& can_tell) {
  const identity who = identity::of(ring_.participants[index].word.load());
  if (who.state == entry_state::free || who == self_ || !who.has_lock) return 0;
  if (ring_.lives.of(index) != member_state::dead) return 0;
  // The program may have closed the segment's descriptor, and another file may have its number now. In that file all
  // members would look dead.
  can_tell = ring_.lives.can_tell();
  if (!can_tell) return 0;
  recover(index, who);
  return 1;
}

std::uint32_t members::sweep() {
  const only_one sweeper(sweeping_);
  bool can_tell = static_cast<bool>(sweeper);
  std::uint32_t dead = 0;
  for (std::uint32_t i = 0; i < ring_.participant_count && can_tell; ++i) dead += look_at(i, can_tell);
  return dead;
}

std::uint32_t members::sweep_if_due(std::uint64_t now_ns) {
  constexpr std::uint32_t kMostAtOnce = 64;
  header& head = *ring_.head;
  std::uint64_t last = head.looked_ns.load_relaxed();
  // The clock advances in ticks, so a slice of kLookNs (50 ms) may seem shorter by up to a tick (10 ms). So a look is
  // due after 40 ms already.
  if (now_ns - last < kLookNs - kLookNs / 5) return 0;
  if (!head.looked_ns.exchange_if(last, now_ns)) return 0;
  const only_one sweeper(sweeping_);
  bool can_tell = static_cast<bool>(sweeper);
  const std::uint32_t from = head.look_from.load_relaxed();
  std::uint32_t dead = 0, looked = 0, i = 0;
  for (; i < ring_.participant_count && looked < kMostAtOnce && can_tell; ++i) {
    const std::uint32_t index = (from % ring_.participant_count + i) % ring_.participant_count;
    if (identity::of(ring_.participants[index].word.load()).state == entry_state::free) continue;
    dead += look_at(index, can_tell);
    ++looked;
  }
  head.look_from.store_relaxed((from % ring_.participant_count + i) % ring_.participant_count);
  return dead;
}

}  // namespace forksight::ipc::detail
