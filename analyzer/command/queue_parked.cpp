#include "command/queue_parked.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <utility>

#include "command/output.hpp"
#include "command/queue_find.hpp"
#include "command/queue_view.hpp"
#include "files/size_signal.hpp"

namespace forksight {
namespace {

ipc::error failed(int why, const std::string& what) {
  return {ipc::errc::system, why, 0, fmt::format("{}: {}", what, std::strerror(why))};
}

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Returns a name that no other process uses.
std::string temporary_name() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format(".forksight-drain-{}-{}-{}", getpid(), now.tv_sec, now.tv_nsec);
}

// Adds files to one folder. Holds a descriptor of the folder, so files go to the same folder even if somebody renames
// it.
class DrainFolder {
 public:
  DrainFolder(int fd, std::string path) : folder_(fd), path_(std::move(path)), temporary_(temporary_name()) {}

  // Writes a new file with these bytes, and returns its path. The file gets its name only when all bytes are on the
  // disk. The name is `name`, followed by a number if such a file exists already. After an error there is no new file.
  ipc::result<std::string> add(const std::string& name, std::span<const char> bytes) const {
    if (auto written = write_temporary(bytes); !written) {
      unlinkat(folder_.fd(), temporary_.c_str(), 0);
      return written.error();
    }
    auto final_name = link_to(name);
    unlinkat(folder_.fd(), temporary_.c_str(), 0);
    if (!final_name) return final_name.error();
    if (fsync(folder_.fd()) != 0) {
      const int why = errno;
      unlinkat(folder_.fd(), final_name->c_str(), 0);
      return failed(why, path_);
    }
    return path_ + "/" + *final_name;
  }

 private:
  ipc::result<void> write_temporary(std::span<const char> bytes) const {
    const std::string path = path_ + "/" + temporary_;
    const OpenFile file(openat(folder_.fd(), temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.fd() < 0) return failed(errno, path);
    while (!bytes.empty()) {
      const ssize_t written = write(file.fd(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed(errno, path);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    if (fsync(file.fd()) != 0) return failed(errno, path);
    return {};
  }

  ipc::result<std::string> link_to(const std::string& name) const {
    for (int number = 1;; ++number) {
      const std::string tried = number == 1 ? name : fmt::format("{}-{}", name, number);
      if (linkat(folder_.fd(), temporary_.c_str(), folder_.fd(), tried.c_str(), 0) == 0) return tried;
      if (errno != EEXIST) return failed(errno, path_ + "/" + tried);
    }
  }

  OpenFile folder_;
  std::string path_;
  std::string temporary_;
};

ipc::result<DrainFolder> open_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT)
    return ipc::error{ipc::errc::system, ENOENT, 0, path + ": no such folder; make it first"};
  if (fd < 0) return failed(errno, path);
  return DrainFolder(fd, path);
}

// Drains one parked message. Returns false if no parked message is left.
ipc::result<bool> drain_one(ipc::queue& from, const DrainFolder& to, const std::string& id) {
  auto got = from.receive_parked();
  if (!got && got.error().code == ipc::errc::timeout) return false;
  if (!got) return got.error();
  const std::string name = fmt::format("{}-{:010}.message", id.substr(0, 8), got->number());
  auto file = to.add(name, {static_cast<const char*>(got->data()), got->size()});
  if (!file) {
    ipc::error why = file.error();
    const auto parked = got->park();
    why.text += parked ? "; the message is parked again" : "; and the message: " + parked.error().text;
    return why;
  }
  const std::uint32_t producer = got->producer();
  const std::size_t bytes = got->size();
  const std::uint32_t deliveries = got->deliveries();
  if (auto done = got->release(); !done) {
    ipc::error why = done.error();
    why.text =
        fmt::format("{}: the message was written into this file, but it may still be parked, too: {}", *file, why.text);
    return why;
  }
  if (write_out(fmt::format("{}: {} from {}, {}\n", *file, count_bytes(bytes), producer, count_deliveries(deliveries))))
    return true;
  return ipc::error{ipc::errc::system, 0, 0, "not all messages were drained"};
}

}  // namespace

ipc::result<void> drain_parked(const std::string& what, const std::string& folder) {
  auto to = open_folder(folder);
  if (!to) return to.error();
  auto queues = attach_queues(what);
  if (!queues) return queues.error();
  for (const ipc::queue& from : *queues) {
    const ipc::snapshot seen = from.inspect();
    if (!seen.holds_references) continue;
    return ipc::error{ipc::errc::bad_option, 0, 0,
                      fmt::format("queue {}: its messages refer to memory outside of it, which would be lost: requeue "
                                  "them, or take them in a program that knows what they are",
                                  seen.id)};
  }
  const files::HeldSizeSignal held;
  std::size_t count = 0;
  for (ipc::queue& from : *queues) {
    const std::string id = from.inspect().id;
    for (;;) {
      auto more = drain_one(from, *to, id);
      if (!more) return more.error();
      if (!*more) break;
      ++count;
    }
  }
  if (!write_out(fmt::format("{} drained\n", count_messages(count)))) {
    return ipc::error{ipc::errc::system, 0, 0, "all messages were drained"};
  }
  return {};
}

ipc::result<std::size_t> requeue_parked(const std::string& what) {
  auto queues = attach_queues(what);
  if (!queues) return queues.error();
  std::size_t count = 0;
  for (ipc::queue& one : *queues) {
    auto requeued = one.requeue();
    if (!requeued) return requeued.error();
    count += *requeued;
  }
  return count;
}

}  // namespace forksight
