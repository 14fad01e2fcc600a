// open_or_create(): several processes that know only a name attach to the same queue.
//
// The creator makes a queue with a random name, as create() does, and becomes a member. Then it renames the file to the
// chosen name, in one step that fails if that name exists. So the chosen name always belongs to a complete queue. A
// creator that is killed earlier leaves a file with a random name, which gc() removes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include "core.hpp"
#include "failure.hpp"
#include "names.hpp"
#include "process.hpp"

namespace forksight::ipc {
namespace {

// How many attempts a call makes at most. An attempt is repeated only if another process has made or removed a file
// meanwhile, or if there was no room.
constexpr int kAttempts = 200;
constexpr int kAttemptsAtOnce = 10;
// Several processes that create the queue at the same time each need room for a moment. So a process that finds no room
// tries again, after pauses that are random and get longer. All pauses together take up to a second.
constexpr int kAttemptsWithoutRoom = 9;

void pause_ms(long ms) {
  const timespec pause{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

unsigned long long number(std::uint64_t value) { return static_cast<unsigned long long>(value); }

const char* feeding_of(std::uint64_t value) { return value == 0 ? "direct" : "thread"; }
const char* after_death_of(std::uint64_t value) { return value == 0 ? "drop" : "redeliver"; }
const char* when_full_of(std::uint64_t value) { return value == 0 ? "block" : value == 1 ? "fail" : "drop_oldest"; }
const char* yes_or_no(std::uint64_t value) { return value == 0 ? "false" : "true"; }

// Compares the options of the existing queue with the wanted ones. spin_us may differ, because it changes only the time
// that a call takes.
result<void> check_fit(const std::string& name, const detail::geometry& is, const detail::geometry& wanted) {
  struct option {
    const char* name;
    std::uint64_t is, wanted;
    const char* (*word)(std::uint64_t);  // null: a number
  };
  const option all[] = {
      {"slots", is.slots, wanted.slots, nullptr},
      {"buffers", is.buffers, wanted.buffers, nullptr},
      {"buffer_bytes", is.buffer_bytes, wanted.buffer_bytes, nullptr},
      {"feeding", is.feed, wanted.feed, feeding_of},
      {"after_death", is.on_death, wanted.on_death, after_death_of},
      {"when_full", is.full, wanted.full, when_full_of},
      {"max_redeliver", is.max_redeliver, wanted.max_redeliver, nullptr},
      {"max_participants", is.participants, wanted.participants, nullptr},
      {"unlink_at", is.unlink_at, wanted.unlink_at, nullptr},
      {"expected_producers", is.expected_producers, wanted.expected_producers, nullptr},
      {"expected_consumers", is.expected_consumers, wanted.expected_consumers, nullptr},
      {"grace in ms", is.grace_ms, wanted.grace_ms, nullptr},
      {"atfork_handlers", is.atfork_handlers, wanted.atfork_handlers, yes_or_no},
      {"holds_references", is.holds_references, wanted.holds_references, yes_or_no},
  };
  for (const option& one : all) {
    if (one.is == one.wanted) continue;
    const auto shown = [&](std::uint64_t value) {
      return one.word != nullptr ? std::string(one.word(value)) : std::to_string(number(value));
    };
    return detail::failure(errc::bad_option,
                           "%s: the queue has %s %s, but this call asks for %s: ask for the options of the queue that "
                           "exists, or choose another name",
                           name.c_str(), one.name, shown(one.is).c_str(), shown(one.wanted).c_str());
  }
  return {};
}

// Puts the name into the text of an error about a segment.
error about(const std::string& name, error why) {
  constexpr std::string_view kSegment = "segment: ";
  if (why.text.starts_with(kSegment)) why.text.replace(0, kSegment.size(), name + ": ");
  return why;
}

// Opens the queue of that name, and takes its flock(), so that gc() does not remove it. Returns no segment if there is
// no queue of that name, or if it was removed meanwhile.
result<std::optional<detail::segment>> find(const std::string& name) {
  auto file = detail::segment::find_named(name, O_RDWR);
  if (!file) {
    if (file.error().code == errc::not_found) return std::optional<detail::segment>();
    return file.error();
  }
  if (!detail::begins_as_queue(file->get())) {
    return detail::no_queue_file(name);
  }
  auto memory = detail::segment::open(std::move(file).value());
  if (!memory) return about(name, memory.error());
  if (!detail::is_called(memory->fd(), name)) return std::optional<detail::segment>();
  return std::optional<detail::segment>(std::move(memory).value());
}

}  // namespace

result<queue> queue::open_or_create(const std::string& choice, const options& wanted) {
  if (auto good = detail::check_choice(choice); !good) return good.error();
  options named = wanted;
  named.backing = strategy::named;
  auto planned = detail::plan(named);
  if (!planned) return planned.error();
  if (named.unlink_at == 1) {
    return detail::failure(errc::bad_option,
                           "unlink_at is 1: nobody else would find the queue by its name: it can be 0, or 2 to %u",
                           named.max_participants);
  }
  const std::string name = std::string(detail::kNamePrefix) + choice;
  int without_room = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt >= kAttemptsAtOnce) pause_ms(1);
    auto found = find(name);
    if (!found) return found.error();
    if (found->has_value()) {
      if (auto fits = check_fit(name, (*found)->shape(), *planned); !fits) return fits.error();
      return open(std::move(**found), named.as);
    }
    auto made = create(named);
    if (!made) {
      const errc why = made.error().code;
      // gc() has removed the file with the random name before create() had locked it.
      if (why == errc::not_found) continue;
      if ((why == errc::no_space || why == errc::cgroup_limit) && ++without_room < kAttemptsWithoutRoom) {
        const long ms = 1L << without_room;
        pause_ms(ms + static_cast<long>(detail::monotonic_ns() % static_cast<std::uint64_t>(ms)));
        continue;
      }
      return made.error();
    }
    auto published = made->core_->publish(name);
    if (published && *published) return made;
    shm_unlink(made->name().c_str());
    if (!published) return published.error();
  }
  return detail::failure(errc::not_found,
                         "%s: other processes created or removed it during all of %d attempts: try again", name.c_str(),
                         kAttempts);
}

}  // namespace forksight::ipc
