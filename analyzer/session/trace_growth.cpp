#include "session/trace_growth.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <system_error>

#include "forksight/trace/format.hpp"

namespace forksight {

bool TraceGrowth::have_traces_grown() {
  namespace fs = std::filesystem;
  constexpr off_t kTailOffset = offsetof(trace::TraceHeader, tail);
  bool has_grown = false;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != trace::kFileSuffix) continue;
    const int fd = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    std::uint64_t tail = 0;
    const ssize_t got = ::pread(fd, &tail, sizeof tail, kTailOffset);
    ::close(fd);
    if (got != static_cast<ssize_t>(sizeof tail)) continue;
    auto [known, is_new] = tails_.try_emplace(entry->path().filename().string(), 0);
    if (is_new || known->second != tail) has_grown = true;
    known->second = tail;
  }
  return has_grown;
}

}  // namespace forksight
