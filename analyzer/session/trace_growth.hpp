// Finds out cheaply whether the shim has written anything since the previous call. The field TraceHeader::tail of each
// trace shows this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace forksight {

class TraceGrowth {
 public:
  explicit TraceGrowth(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // True if a trace was added or has grown since the previous call. The call lists the folder and does one small read
  // for each trace.
  bool have_traces_grown();

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::uint64_t> tails_;
};

}  // namespace forksight
