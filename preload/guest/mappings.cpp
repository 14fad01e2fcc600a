#include "guest/mappings.hpp"

#include <cstdint>

#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// Parses the text of /proc/PID/maps one character at a time: "start-end perms offset ...", with numbers in hex. The
// fourth letter of perms is 's' for shared mappings.
class MapsParser {
 public:
  explicit MapsParser(std::uint64_t address) : address_(address) {}

  // True when the parser has reached the permissions in the line whose range contains the address.
  bool feed(char letter) {
    if (letter == '\n') {
      start_ = end_ = 0;
      field_ = Field::kStart;
      permission_ = 0;
      return false;
    }
    switch (field_) {
      case Field::kStart:
        if (letter == '-') {
          field_ = Field::kEnd;
        } else {
          start_ = start_ * 16 + digit(letter);
        }
        return false;
      case Field::kEnd:
        if (letter == ' ') {
          field_ = Field::kPermissions;
        } else {
          end_ = end_ * 16 + digit(letter);
        }
        return false;
      case Field::kPermissions:
        if (++permission_ < 4) return false;
        field_ = Field::kRest;
        is_shared_ = letter == 's';
        return address_ >= start_ && address_ < end_;
      case Field::kRest: return false;
    }
    return false;
  }
  bool is_shared() const { return is_shared_; }

 private:
  enum class Field { kStart, kEnd, kPermissions, kRest };

  static std::uint64_t digit(char letter) {
    return static_cast<std::uint64_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
  }

  std::uint64_t address_;
  std::uint64_t start_ = 0;
  std::uint64_t end_ = 0;
  Field field_ = Field::kStart;
  int permission_ = 0;
  bool is_shared_ = false;
};

enum class Sharing { kUnknown, kPrivate, kShared };

Sharing find_sharing(const volatile void* address) {
  char chunk[512];
  const int fd = sys::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Sharing::kUnknown;
  MapsParser parser(reinterpret_cast<std::uint64_t>(address));
  bool found = false;
  for (long got = sys::read(fd, chunk, sizeof chunk); got > 0 && !found; got = sys::read(fd, chunk, sizeof chunk)) {
    for (long i = 0; i < got && !found; ++i) found = parser.feed(chunk[i]);
  }
  sys::close(fd);
  if (!found) return Sharing::kUnknown;
  return parser.is_shared() ? Sharing::kShared : Sharing::kPrivate;
}

}  // namespace

bool is_in_shared_mapping(const volatile void* address) { return find_sharing(address) == Sharing::kShared; }

bool is_in_private_mapping(const volatile void* address) { return find_sharing(address) == Sharing::kPrivate; }

}  // namespace forksight
