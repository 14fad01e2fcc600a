#include "files/debug_budget.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "files/budgets.hpp"

namespace forksight::files {
namespace {

using FileKey = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

DebugVerdict refuse(const std::string& shown, const std::string& why) {
  return {false, fmt::format("{}: {}; the report has no source lines of this file", shown, why)};
}

DebugVerdict judge(const struct stat& status, const ElfTables& tables, const std::string& shown, bool is_separate,
                   std::uint64_t& spent) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (is_separate && size > kMaxDebugFileBytes) {
    return refuse(shown, fmt::format("its debug information has {}, more than {}", size_words(size),
                                     size_words(kMaxDebugFileBytes)));
  }
  const std::uint64_t unpacked = tables.unpacked_bytes();
  if (unpacked > kMaxUnpackedBytes) {
    return refuse(shown, fmt::format("its debug information would unpack to {}, more than {}", size_words(unpacked),
                                     size_words(kMaxUnpackedBytes)));
  }
  if (unpacked > kMaxUnpackedBytesOfRun - spent) {
    return refuse(shown, fmt::format("its debug information would unpack to {}, and that of other files took the {} "
                                     "that forksight unpacks",
                                     size_words(unpacked), size_words(kMaxUnpackedBytesOfRun)));
  }
  for (const char* const name : {".debug_aranges", ".zdebug_aranges"}) {
    const ElfSection* const index = tables.find(name);
    if (index != nullptr && std::max(index->size, index->unpacked_size) > kMaxAddressIndexBytes) {
      return refuse(shown, fmt::format("its index of addresses has {}, more than {}",
                                       size_words(std::max(index->size, index->unpacked_size)),
                                       size_words(kMaxAddressIndexBytes)));
    }
  }
  spent += unpacked;
  return {true, ""};
}

DebugVerdict judge_mini_debug(int fd, const ElfSection& section, const std::string& shown, std::uint64_t& spent) {
  const auto refuse_mini = [&](const std::string& why) {
    return DebugVerdict{false, fmt::format("{}: the symbol table in its .gnu_debugdata would unpack to {}; some of its "
                                           "functions have no names",
                                           shown, why)};
  };
  const std::optional<std::uint64_t> unpacked = find_mini_debug_bytes(fd, section);
  if (!unpacked) return refuse_mini(fmt::format("more than {}", size_words(kMaxMiniDebugBytes)));
  if (*unpacked > kMaxMiniDebugBytesOfRun - spent) {
    return refuse_mini(fmt::format("{}, and those of other files took the {} that forksight unpacks",
                                   size_words(*unpacked), size_words(kMaxMiniDebugBytesOfRun)));
  }
  spent += *unpacked;
  return {true, ""};
}

// Returns nullopt if the file cannot be identified.
std::optional<FileKey> key_of(int fd, struct stat& status) {
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return FileKey{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace

DebugVerdict charge_mini_debug(int fd, const ElfSection& section, const std::string& shown) {
  static std::mutex mutex;
  static std::uint64_t spent = 0;
  // A file may have several sections with the name .gnu_debugdata.
  static std::map<std::pair<FileKey, std::uint64_t>, DebugVerdict> known;
  struct stat status {};
  const auto key = key_of(fd, status);
  if (!key) return {};
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = known.try_emplace({*key, section.offset});
  if (is_new) at->second = judge_mini_debug(fd, section, shown, spent);
  return at->second;
}

std::string size_words(std::uint64_t bytes) {
  constexpr double kGiga = 1e9;
  constexpr double kMega = 1e6;
  const auto value = static_cast<double>(bytes);
  if (bytes % (std::uint64_t{1} << 30U) == 0) return fmt::format("{} GiB", bytes >> 30U);
  if (bytes % (std::uint64_t{1} << 20U) == 0) return fmt::format("{} MiB", bytes >> 20U);
  return value >= kGiga ? fmt::format("{:.1f} GB", value / kGiga) : fmt::format("{:.1f} MB", value / kMega);
}

DebugVerdict charge_debug_file(int fd, const ElfTables& tables, const std::string& shown, bool is_separate) {
  static std::mutex mutex;
  static std::uint64_t spent = 0;
  static std::map<FileKey, DebugVerdict> known;
  struct stat status {};
  const auto key = key_of(fd, status);
  if (!key) return {};
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = known.try_emplace(*key);
  if (is_new) at->second = judge(status, tables, shown, is_separate, spent);
  return at->second;
}

}  // namespace forksight::files
