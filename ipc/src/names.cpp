#include "names.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "failure.hpp"
#include "layout.hpp"

namespace forksight::ipc::detail {
namespace {

constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr std::size_t kLongest = 64;
constexpr std::size_t kRandomDigits = 32;

bool consists_of(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

bool is_choice(std::string_view choice) {
  if (choice.empty() || choice.size() > kLongest || choice.front() == '.' || !consists_of(choice, kAllowed))
    return false;
  return choice.size() != kRandomDigits || !consists_of(choice, "0123456789abcdefABCDEF");
}

// Makes a refused name fit for an error text. The name may contain any bytes and may be long. So bytes that are not
// printable are replaced, and a long name is cut.
std::string quoted(std::string_view text) {
  std::string shown = "\"";
  for (const char letter : text.substr(0, kLongest + 1)) shown += letter >= ' ' && letter <= '~' ? letter : '?';
  return shown + (text.size() > kLongest + 1 ? "...\"" : "\"");
}

}  // namespace

bool is_random_name(std::string_view name) {
  return name.starts_with(kNamePrefix) && name.size() == kNamePrefix.size() + kRandomDigits &&
         consists_of(name.substr(kNamePrefix.size()), "0123456789abcdef");
}

bool is_chosen_name(std::string_view name) {
  return name.starts_with(kNamePrefix) && is_choice(name.substr(kNamePrefix.size()));
}

result<void> check_choice(std::string_view choice) {
  if (is_choice(choice)) return {};
  return failure(errc::bad_option,
                 "name is %s: it can have 1 to %zu letters, digits, '.', '_' and '-', not begin with '.', and not be "
                 "%zu hex digits",
                 quoted(choice).c_str(), kLongest, kRandomDigits);
}

error no_queue_name(const std::string& name) {
  return failure(errc::bad_option,
                 "%s: is not the name of a queue: names are /forksight-<32 hex digits> and /forksight-<chosen name>",
                 name.c_str());
}

error no_queue_file(const std::string& name) {
  return failure(errc::untrusted, "%s: is a file, but not a queue: remove it, or choose another name", name.c_str());
}

result<std::string> chosen_name_of(int fd) {
  std::array<char, 64> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  std::array<char, 512> target{};
  const ssize_t size = readlink(link.data(), target.data(), target.size());
  if (size < 0) return failed_call(errno, "segment: readlink of %s", link.data());
  std::string_view path(target.data(), static_cast<std::size_t>(size));
  // The kernel appends this text to the path of a removed file.
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || !is_chosen_name(path.substr(slash))) return std::string();
  return std::string(path.substr(slash));
}

bool is_called(int fd, const std::string& name) {
  struct stat file {
  }, named{};
  return fstat(fd, &file) == 0 && lstat(path_of(name).c_str(), &named) == 0 && file.st_dev == named.st_dev &&
         file.st_ino == named.st_ino;
}

bool is_special_file(const std::string& name) {
  struct stat named {};
  if (lstat(path_of(name).c_str(), &named) != 0) return false;
  return !S_ISREG(named.st_mode) && !S_ISLNK(named.st_mode) && !S_ISDIR(named.st_mode);
}

bool begins_as_queue(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < static_cast<off_t>(kPage)) return false;
  std::uint64_t magic = 0;
  static_assert(offsetof(header, magic) == 0);
  return pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == kMagic;
}

}  // namespace forksight::ipc::detail
