// A queue as text and as JSON, and its parked messages.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "forksight/ipc/snapshot.hpp"

namespace forksight {

std::string queue_text(const ipc::snapshot& seen);
nlohmann::json queue_json(const ipc::snapshot& seen);

// Lists, for each queue, its parked messages and those that somebody is taking out.
std::string parked_text(const std::vector<ipc::snapshot>& queues);
nlohmann::json parked_json(const ipc::snapshot& seen);

// Returns words such as "1 message" or "2 messages"; "1 byte" or "2 bytes".
std::string count_messages(std::size_t count);
std::string count_bytes(std::uint64_t count);
// Returns words such as "delivered once" or "delivered 4 times".
std::string count_deliveries(std::uint32_t count);

}  // namespace forksight
