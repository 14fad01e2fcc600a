#include "image/core_memory.hpp"

#include <unistd.h>

#include <algorithm>

#include "files/open_file.hpp"

namespace forksight::image {
namespace {

// Returns the range that contains `address`, or null. `next`: where the first range behind `address` starts.
template <class T>
const T* find_range(const std::vector<T>& ranges, std::uint64_t address, std::uint64_t& next) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](std::uint64_t value, const T& range) { return value < range.start; });
  next = after == ranges.end() ? ~std::uint64_t{0} : after->start;
  if (after == ranges.begin()) return nullptr;
  const T& range = *std::prev(after);
  return address < range.end ? &range : nullptr;
}

}  // namespace

CoreMemory::~CoreMemory() {
  for (const auto& [path, fd] : opened_) {
    if (fd >= 0) ::close(fd);
  }
}

void CoreMemory::add_file(std::uint64_t start, std::uint64_t end, std::uint64_t offset, const std::string& path) {
  const auto [opened, is_new] = opened_.try_emplace(path, -1);
  if (is_new) opened->second = files::open_regular(path).release();
  if (opened->second < 0) return;
  const auto after =
      std::upper_bound(backings_.begin(), backings_.end(), start,
                       [](std::uint64_t value, const Backing& backing) { return value < backing.start; });
  if (after != backings_.end() && after->start < end) return;
  if (after != backings_.begin() && std::prev(after)->end > start) return;
  backings_.insert(after, {start, end, offset, opened->second});
}

std::size_t CoreMemory::read_piece(std::uint64_t address, std::span<std::byte> bytes) const {
  std::uint64_t next_segment = 0;
  std::uint64_t next_backing = 0;
  const CoreFile::Segment* segment = find_range(file_.segments(), address, next_segment);
  if (segment != nullptr && address - segment->start < segment->bytes) {
    const std::uint64_t within = address - segment->start;
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), segment->bytes - within);
    return file_.read(segment->offset + within, bytes.first(size));
  }
  const Backing* backing = find_range(backings_, address, next_backing);
  if (backing == nullptr) return 0;
  const std::uint64_t end = std::min(backing->end, next_segment);
  const std::size_t size = std::min<std::uint64_t>(bytes.size(), end - address);
  const ssize_t got =
      ::pread(backing->fd, bytes.data(), size, static_cast<off_t>(backing->offset + (address - backing->start)));
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

std::size_t CoreMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size() && address + done >= address) {
    const std::size_t got = read_piece(address + done, bytes.subspan(done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace forksight::image
