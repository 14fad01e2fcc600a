// A queue as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "forksight/ipc/snapshot.hpp"

namespace forksight {

std::string queue_text(const ipc::snapshot& seen);
nlohmann::json queue_json(const ipc::snapshot& seen);

}  // namespace forksight
