// The state of a queue: its participants, who holds which buffer and for how long, and how many messages were lost. The
// snapshot is taken while other processes use the queue. So its parts may come from slightly different moments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"

namespace forksight::ipc {

struct snapshot {
  enum class life : std::uint8_t { alive, dead, unknown };
  struct participant {
    std::uint32_t index = 0;
    std::uint32_t pid = 0;
    life lives = life::unknown;
    // false: the participant has no lock by which others see that it lives. It attached without a usable /proc, or the
    // kernel refused the lock. If the participant has a lock and `lives` is unknown, the calling process cannot look at
    // locks.
    bool has_lock = true;
    bool is_of_other_namespace = false;    // its pid means nothing in our pid namespace
    bool is_of_unknown_namespace = false;  // no /proc there or here: its pid may mean nothing in our pid namespace
    char state = 0;                        // the state in /proc/PID/stat: R, S, D, T, Z; 0: not known
    bool is_producer = false, is_consumer = false, is_caretaker = false;
    bool waits_for_message = false, waits_for_slot = false, waits_for_buffer = false;
    std::uint64_t sent = 0, received = 0;
    std::string name;
  };
  // returned: the message's consumer died, or the message was requeued. The next receive() takes it. withdrawn:
  // receive_parked() has taken the message.
  enum class buffer_state : std::uint8_t { free, loaned, queued, held, returned, parked, withdrawn, corrupt };
  struct buffer {
    std::uint32_t index = 0;
    buffer_state state = buffer_state::free;
    std::uint32_t pid = 0;  // pid of the participant that has the buffer; 0: none has it, or that participant is gone
    std::uint32_t deliveries = 0;
    std::uint64_t age_ms = 0;  // since the last change of its state
    // The fields below describe a message. For a loan they are 0.
    std::uint64_t bytes = 0;
    std::uint32_t producer = 0;         // pid
    std::uint32_t number = 0;           // the value of message::number()
    std::uint32_t parked_by = 0;        // pid of the consumer that parked the message; 0: not parked by a consumer
    std::vector<std::uint32_t> killed;  // pids of consumers that died while they held the message; only the last six
  };

  std::string id;    // 32 hex digits
  std::string name;  // name of a named queue, else empty
  strategy backing{};
  feed feeding{};
  on_death after_death{};
  full when_full{};
  std::uint32_t slots = 0, buffers = 0, max_participants = 0;
  std::uint64_t buffer_bytes = 0, segment_bytes = 0;
  std::uint64_t payload_inode = 0;  // inode of a read-only payload's file, else 0
  std::uint32_t queued = 0, loaned = 0, held = 0, returned = 0, parked = 0, withdrawn = 0, free = 0;
  // How many handles are expected in a role, and how many have ended. Handles that are attached now do not count as
  // ended.
  struct role_counts {
    std::uint32_t expected = 0;  // options::expected_producers or options::expected_consumers; 0: not known
    std::uint32_t closed = 0;    // closed their handle, or called close_producer()
    std::uint32_t died = 0;
  };
  role_counts producers, consumers;
  std::uint64_t grace_ms = 0;
  std::vector<participant> participants;
  std::vector<buffer> in_use;  // all buffers that are not free
  std::uint64_t dropped = 0, redelivered = 0, lost = 0, recovered = 0, high_water = 0;
  std::uint64_t blocked_send_ms = 0, blocked_receive_ms = 0;
  bool is_shut_down = false, is_poisoned = false, holds_references = false;
  std::uint64_t poisoned_offset = 0;
};

// True if `path` is the path of a queue's file, as a link in /proc/PID/fd or a line of /proc/PID/maps shows it. Also
// true for a removed file.
bool is_queue_file(std::string_view path);

// True if the file behind a descriptor begins like a queue.
bool begins_as_queue(int fd);

// Reads the state of the queue behind a descriptor, or of the queue with that name. The caller does not become a
// participant, and maps the segment read-only.
result<snapshot> inspect(int fd);
// Like inspect(fd), but the queue must belong to `user`. inspect(fd) takes the effective user of this process.
result<snapshot> inspect(int fd, std::uint32_t user);
result<snapshot> inspect(const std::string& name);

}  // namespace forksight::ipc
