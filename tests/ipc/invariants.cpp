#include "invariants.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

namespace forksight::ipc::test {
namespace {

detail::segment open_again(const queue& of) {
  auto found = detail::segment::open_to_read(detail::descriptor(dup(of.fd())), geteuid());
  if (!found) std::abort();
  return std::move(found).value();
}

std::string check_at_rest(const queue& survivor) {
  const snapshot now = survivor.inspect();
  if (now.is_poisoned) return "the queue is poisoned at " + std::to_string(now.poisoned_offset);
  if (now.loaned != 0 || now.held != 0 || now.withdrawn != 0) return "a dead process still has a buffer";
  if (now.free + now.queued + now.returned + now.parked != now.buffers) return "buffers are not conserved";
  if (now.participants.size() != 1) return "the entry of a dead process is not free";
  if (now.after_death == on_death::redeliver && now.lost != 0) return "a message was lost that nobody had acknowledged";
  const words memory(survivor);
  for (auto& kind : memory.view().head->waiting) {
    for (auto& map : kind) {
      if (map.load() != 0) return "a dead process still waits";
    }
  }
  return {};
}

// Receives and releases all queued and returned messages. With `parked`, it does so with all parked messages instead.
std::string take_all(queue& survivor, bool parked, std::vector<std::uint32_t>& numbers) {
  const std::uint32_t most = survivor.inspect().buffers;
  for (;;) {
    auto got = parked ? survivor.receive_parked() : survivor.receive(deadline::now());
    if (!got) {
      const errc code = got.error().code;
      if (code == errc::timeout || code == errc::producer_died || code == errc::closed) return {};
      return "receive: " + got.error().text;
    }
    std::uint32_t number = 0;
    if (got->size() != sizeof number) return "a message has " + std::to_string(got->size()) + " bytes";
    std::memcpy(&number, got->data(), sizeof number);
    numbers.push_back(parked ? number + kParked : number);
    if (numbers.size() > most) return "more messages came than there are buffers";
    if (auto done = got->release(); !done) return "release: " + done.error().text;
  }
}

// Checks that every buffer can be lent, and that no buffer is lent twice.
std::string claim_all(queue& survivor, std::size_t buffers) {
  std::set<std::uint32_t> seen;
  std::vector<loan> held;
  for (auto got = survivor.acquire(deadline::now()); got; got = survivor.acquire(deadline::now())) {
    if (!seen.insert(got->index()).second) return "a buffer was lent twice";
    held.push_back(std::move(got).value());
  }
  if (held.size() == buffers) return {};
  return "only " + std::to_string(held.size()) + " of " + std::to_string(buffers) + " free buffers could be lent";
}

std::string fill_and_empty(queue& survivor, std::size_t buffers, std::size_t slots) {
  const std::size_t room = std::min(buffers, slots);
  for (std::uint32_t i = 0; i < room; ++i) {
    if (!send_number(survivor, 1000 + i)) {
      return "only " + std::to_string(i) + " of " + std::to_string(room) + " messages could be sent";
    }
  }
  // One more message is refused. With drop_oldest, a further message would replace the oldest message. So none is sent.
  if (survivor.inspect().when_full != full::drop_oldest && send_number(survivor, 0)) {
    return "more messages could be sent than there is room for";
  }
  for (std::uint32_t i = 0; i < room; ++i) {
    auto got = survivor.receive(deadline::now());
    if (!got) return "message " + std::to_string(i) + " of a full queue did not come: " + got.error().text;
    std::uint32_t number = 0;
    if (got->size() == sizeof number) std::memcpy(&number, got->data(), sizeof number);
    if (number != 1000 + i) return "a full queue delivered its messages in the wrong order";
  }
  if (survivor.receive(deadline::now())) return "a message was delivered twice";
  return {};
}

}  // namespace

words::words(const queue& of) : memory_(open_again(of)) {}

bool send_number(queue& to, std::uint32_t number, deadline until) {
  return to.send_copy(&number, sizeof number, until).has_value();
}

std::size_t recover_dead(queue& survivor, std::size_t dead) {
  const auto end = deadline::clock::now() + std::chrono::seconds(10);
  std::size_t found = survivor.recover();
  while (found < dead && deadline::clock::now() < end) {
    sched_yield();
    found += survivor.recover();
  }
  return found;
}

std::string wait_for_deaths(const queue& survivor, std::size_t dead) {
  const auto end = deadline::clock::now() + std::chrono::seconds(10);
  for (;;) {
    // The time is read before the locks. So if this process does not run for long, it still examines the locks once.
    const bool is_last = deadline::clock::now() >= end;
    const auto all = survivor.inspect().participants;
    const auto is_dead = [](const auto& one) { return one.lives == snapshot::life::dead; };
    if (static_cast<std::size_t>(std::ranges::count_if(all, is_dead)) >= dead) return {};
    if (is_last) {
      std::string text = "fewer than " + std::to_string(dead) + " processes look dead after 10 s; these do not:";
      for (const auto& one : all) {
        if (!is_dead(one)) text += " " + std::to_string(one.pid);
      }
      return text;
    }
    sched_yield();
  }
}

bool wait_until_unused(const std::string& name) {
  const auto end = deadline::clock::now() + std::chrono::seconds(10);
  const detail::descriptor file(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!file) return false;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || deadline::clock::now() >= end) return false;
    sched_yield();
  }
  return true;
}

leftovers check_survivor(queue& survivor) {
  leftovers left;
  // Only the survivor lives. The last call must find no dead member.
  if (const std::size_t there = survivor.inspect().participants.size(); there > 1) {
    left.broken = wait_for_deaths(survivor, there - 1);
    if (left.broken.empty() && survivor.recover() != there - 1) left.broken = "a dead process was not recovered";
  }
  if (left.broken.empty() && survivor.recover() != 0) left.broken = "recovery does not end";
  if (left.broken.empty()) left.broken = check_at_rest(survivor);
  if (!left.broken.empty()) return left;
  const snapshot before = survivor.inspect();
  left.broken = take_all(survivor, false, left.numbers);
  if (left.broken.empty() && left.numbers.size() != before.queued + before.returned) {
    left.broken = "a buffer is queued or returned, but receive() does not deliver its message";
  }
  if (left.broken.empty()) left.broken = take_all(survivor, true, left.numbers);
  if (left.broken.empty() && left.numbers.size() != before.queued + before.returned + before.parked) {
    left.broken = "receive_parked() does not deliver a parked message";
  }
  const std::size_t buffers = before.buffers;
  if (left.broken.empty()) left.broken = claim_all(survivor, buffers);
  for (int round = 0; round < 2 && left.broken.empty(); ++round) {
    left.broken = fill_and_empty(survivor, buffers, before.slots);
  }
  return left;
}

}  // namespace forksight::ipc::test
