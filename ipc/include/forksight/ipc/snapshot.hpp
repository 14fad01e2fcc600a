// The state of a queue: who takes part, who holds what since when, what was lost. It is read while others go on, so its
// parts may be of slightly different instants.
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
    life lives = life::unknown;          // unknown: it attached where there is no /proc
    bool is_of_other_namespace = false;  // its pid is not ours to look up
    char state = 0;                      // of /proc/PID/stat: R, S, D, T, Z; 0: not known
    bool is_producer = false, is_consumer = false, is_caretaker = false;
    bool waits_for_message = false, waits_for_slot = false, waits_for_buffer = false;
    std::uint64_t sent = 0, received = 0;
    std::string name;
  };
  // returned: its consumer died, or it was requeued; the next receive() takes it. withdrawn: taken by receive_parked().
  enum class buffer_state : std::uint8_t { free, loaned, queued, held, returned, parked, withdrawn, corrupt };
  struct buffer {
    std::uint32_t index = 0;
    buffer_state state = buffer_state::free;
    std::uint32_t pid = 0;  // of the participant that has it; 0: nobody's, or of one that is gone
    std::uint32_t deliveries = 0;
    std::uint64_t age_ms = 0;  // since the last transition
    // Of a message; 0 of a loan.
    std::uint64_t bytes = 0;
    std::uint32_t producer = 0;         // pid
    std::uint32_t number = 0;           // as of message::number()
    std::uint32_t parked_by = 0;        // pid of the consumer that parked it; 0: it has killed too many
    std::vector<std::uint32_t> killed;  // pids of the consumers that died with it, the last six
  };

  std::string id;    // 32 hex digits
  std::string name;  // of a named queue, else empty
  strategy st{};
  feed f{};
  on_death od{};
  full fl{};
  std::uint32_t slots = 0, buffers = 0, max_participants = 0;
  std::uint64_t buffer_bytes = 0, segment_bytes = 0;
  std::uint64_t payload_inode = 0;  // of the file of a read-only payload, else 0
  std::uint32_t queued = 0, loaned = 0, held = 0, returned = 0, parked = 0, withdrawn = 0, free = 0;
  std::vector<participant> participants;
  std::vector<buffer> in_use;  // all that are not free
  std::uint64_t dropped = 0, redelivered = 0, lost = 0, recovered = 0, high_water = 0;
  std::uint64_t blocked_send_ms = 0, blocked_receive_ms = 0;
  bool is_shut_down = false, is_poisoned = false, holds_references = false;
  std::uint64_t poisoned_offset = 0;
};

// Is this the path of a queue's file, as a link in /proc/PID/fd or a line of /proc/PID/maps shows it. True of a removed
// file, too.
bool is_queue_file(std::string_view path);

// The state of the queue behind a descriptor, or of that name. The caller does not take part: the segment is mapped
// read-only.
result<snapshot> inspect(int fd);
result<snapshot> inspect(const std::string& name);

}  // namespace forksight::ipc
