// Tells cheaply whether the shim wrote something since the last time: by the tail mark of each trace's header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace forksight {

class TraceNews {
 public:
  explicit TraceNews(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // True if a trace came or grew since the previous call. A listing, and one small read a trace.
  bool arrived();

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::uint64_t> tails_;
};

}  // namespace forksight
