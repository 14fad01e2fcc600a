#include "segment.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "crc32c.hpp"
#include "failure.hpp"
#include "names.hpp"
#include "process.hpp"
#include "segment_memory.hpp"

#ifndef MFD_NOEXEC_SEAL  // Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace forksight::ipc::detail {
namespace {

constexpr int kAttempts = 100;  // how many files a call makes at most, if gc() interferes with each of them
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr mode_t kRootsMode = 0666;  // the mode of a memfd that root makes

std::string name_for(const geometry& shape) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s%016llx%016llx", kNamePrefix.data(),
                static_cast<unsigned long long>(shape.id[0]), static_cast<unsigned long long>(shape.id[1]));
  return text.data();
}

// The name that the user chose for the file, if there is one. Otherwise the random name.
result<std::string> name_of(int fd, const geometry& shape) {
  auto chosen = chosen_name_of(fd);
  if (!chosen || !chosen->empty()) return chosen;
  return name_for(shape);
}

// Chooses the random id of a new queue.
result<void> choose_id(geometry& shape) {
  ssize_t random = -1;
  do {
    random = getrandom(shape.id, sizeof shape.id, 0);
  } while (random < 0 && errno == EINTR);
  if (random != sizeof shape.id) return failed_call(errno, "segment: getrandom");
  return {};
}

result<descriptor> make_memfd(const char* name, std::uint64_t bytes) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return failed_call(errno, "segment: memfd_create");
  descriptor file(fd);
  // A process that gives up root's rights must still be able to open the file a second time (member_lock.hpp). So a
  // file of root has a mode that lets every user open it. This is safe: the file has no name, so only a process that
  // got its descriptor can open it.
  if (fchmod(fd, geteuid() == 0 ? kRootsMode : 0600) != 0) return failed_call(errno, "segment: fchmod");
  if (auto done = allocate(fd, bytes, "memory"); !done) return done.error();
  return file;
}

// Only a process that holds the lock of this byte may remove a chosen name. The byte is after the bytes of
// member_lock.cpp.
struct flock name_byte(short type) {
  struct flock byte {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = (std::int64_t{1} << 50) + kMaxParticipants + 1;
  byte.l_len = 1;
  return byte;
}

// gc() removes the name before it releases its lock. So if a process has the shared lock and the name still exists,
// gc() does not remove the name.
bool has_name(int fd) {
  struct stat about {};
  return fstat(fd, &about) != 0 || about.st_nlink != 0;
}

result<descriptor> make_named(const std::string& name, std::uint64_t bytes) {
  const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return failed_call(errno, "segment: shm_open of %s", name.c_str());
  descriptor file(fd);
  // The lock is taken before the file has a size, because gc() removes files that nobody has locked.
  const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) == 0;
  if (!is_locked && errno != EWOULDBLOCK) {
    const int why = errno;
    shm_unlink(name.c_str());
    return failed_call(why, "segment: flock of %s", name.c_str());
  }
  if (!is_locked || !has_name(fd)) {
    shm_unlink(name.c_str());  // with dry_run, gc() has locked the file but not removed it
    return failure(errc::not_found,
                   "segment: gc() locked or removed each of the %d files that this call made (the last one: %s): try "
                   "again",
                   kAttempts, name.c_str());
  }
  if (auto done = allocate(fd, bytes, "/dev/shm" + name); !done) {
    shm_unlink(name.c_str());
    return done.error();
  }
  return file;
}

// True if root has made the file with make_memfd(). Nobody else can make such a file, and root can change the memory of
// all processes anyway. So a process of any user that has the descriptor may use the file.
bool is_roots_memfd(int fd, const struct stat& about) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return about.st_uid == 0 && (about.st_mode & 0777) == kRootsMode && seals >= 0 && (seals & kSeals) == kSeals;
}

result<void> check_file(int fd, const struct stat& about, uid_t user) {
  if (!S_ISREG(about.st_mode)) return failure(errc::untrusted, "segment: is not a regular file");
  if (is_roots_memfd(fd, about)) return {};
  if (about.st_uid != user) {
    return failure(
        errc::untrusted,
        "segment: belongs to user %u, but this process to user %u: only processes of one user can share a queue%s",
        about.st_uid, user,
        about.st_uid == 0 ? ". Attach before you give up root's rights, or use strategy::memfd" : "");
  }
  if ((about.st_mode & 077) != 0) {
    return failure(errc::untrusted, "segment: its mode is %03o, so other users may open it: the mode must be 600",
                   about.st_mode & 0777);
  }
  return {};
}

result<void> check_seals(int fd, int wanted) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & wanted) != wanted) {
    return failure(errc::untrusted,
                   "segment: has the seals 0x%x, but needs 0x%x: without them, another process could shorten it while "
                   "it is mapped",
                   seals < 0 ? 0 : seals, wanted);
  }
  return {};
}

}  // namespace

segment& segment::operator=(segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(payload_fd_, other.payload_fd_);
  std::swap(name_, other.name_);
  std::swap(shape_, other.shape_);
  std::swap(view_, other.view_);
  std::swap(base_, other.base_);
  std::swap(mapped_, other.mapped_);
  std::swap(payload_map_, other.payload_map_);
  std::swap(payload_mapped_, other.payload_mapped_);
  std::swap(payload_, other.payload_);
  std::swap(can_write_payload_, other.can_write_payload_);
  return *this;
}

segment::~segment() {
  if (base_ != nullptr) munmap(base_, mapped_);
  if (payload_map_ != nullptr) munmap(payload_map_, payload_mapped_);
}

result<segment> segment::create(const options& wanted) {
  auto planned = plan(wanted);
  if (!planned) return planned.error();
  segment made;
  made.shape_ = *planned;
  geometry& shape = made.shape_;
  if (auto chosen = choose_id(shape); !chosen) return chosen.error();
  shape.creator_namespace = own_pid_namespace();
  shape.creator_uid = geteuid();
  const std::uint64_t payload_bytes = shape.readonly_payload != 0 ? shape.buffers * shape.buffer_bytes : 0;
  if (auto room = check_control_group(shape.bytes + payload_bytes); !room) return room.error();

  const bool is_named = wanted.backing == strategy::named;
  if (is_named) made.name_ = name_for(shape);
  auto file = is_named ? make_named(made.name_, shape.bytes) : make_memfd("forksight-queue", shape.bytes);
  // gc() may examine or remove the file before it is locked. Then a file with another name is made.
  for (int attempt = 1; !file && file.error().code == errc::not_found && attempt < kAttempts; ++attempt) {
    if (auto chosen = choose_id(shape); !chosen) return chosen.error();
    made.name_ = name_for(shape);
    file = make_named(made.name_, shape.bytes);
  }
  if (!file) return file.error();
  made.fd_ = std::move(file).value();
  // From here on, a failure must remove the name.
  const auto give_up = [&](error why) -> result<segment> {
    if (is_named) shm_unlink(made.name_.c_str());
    return why;
  };
  if (!is_named && fcntl(made.fd_.get(), F_ADD_SEALS, kSeals) != 0)
    return give_up(failed_call(errno, "segment: sealing"));
  if (payload_bytes != 0) {
    auto payload = make_memfd("forksight-payload", payload_bytes);
    if (!payload) return give_up(payload.error());
    made.payload_fd_ = std::move(payload).value();
    struct stat payload_about {};
    if (fstat(made.payload_fd_.get(), &payload_about) != 0) return give_up(failed_call(errno, "segment: its payload"));
    shape.payload_inode = payload_about.st_ino;
  }
  shape.crc = crc32c(&shape, offsetof(geometry, crc));
  if (auto mapped = made.map(access::all); !mapped) return give_up(mapped.error());
  // The file is sealed after the creator has mapped it. So the creator's mapping stays writable.
  if (payload_bytes != 0 && fcntl(made.payload_fd_.get(), F_ADD_SEALS, kSeals | F_SEAL_FUTURE_WRITE) != 0) {
    return give_up(failed_call(errno, "segment: sealing its payload against writing"));
  }
  std::memcpy(&made.view_.head->shape, &shape, sizeof shape);
  made.view_.initialise();
  made.view_.head->magic.store_release(kMagic);  // pairs with the load in open()
  return made;
}

result<void> segment::check_descriptor(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) {
    return errno == EBADF ? failure(errc::not_found, "descriptor %d: is not open", fd)
                          : failed_call(errno, "descriptor %d: fstat", fd);
  }
  if (!S_ISREG(about.st_mode)) return failure(errc::untrusted, "descriptor %d: is not a regular file", fd);
  return {};
}

result<descriptor> segment::copy_of(int fd) {
  if (auto good = check_descriptor(fd); !good) return good.error();
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return failed_call(errno, "descriptor %d: copying it", fd);
  return descriptor(own);
}

result<segment> segment::open(descriptor fd, descriptor payload) {
  return open(std::move(fd), std::move(payload), access::all, geteuid());
}

result<segment> segment::open_to_read(descriptor fd, uid_t user) { return open(std::move(fd), {}, access::read, user); }

result<segment> segment::open(descriptor fd, descriptor payload, access how, uid_t user) {
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) {
    return failed_call(errno, "segment: fstat");
  }
  if (auto good = check_file(fd.get(), about, user); !good) return good.error();
  if (about.st_size < static_cast<off_t>(kPage)) {
    return failure(errc::corrupt, "segment: has %lld bytes, but a header alone has %zu",
                   static_cast<long long>(about.st_size), kPage);
  }
  segment found;
  found.fd_ = std::move(fd);
  found.payload_fd_ = std::move(payload);

  void* const page = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, found.fd_.get(), 0);
  if (page == MAP_FAILED) return failed_call(errno, "segment: mmap");
  const auto* const head = static_cast<const header*>(page);
  const std::uint64_t magic = head->magic.load();
  std::memcpy(&found.shape_, &head->shape, sizeof found.shape_);
  munmap(page, kPage);
  const geometry& shape = found.shape_;
  if (magic != kMagic) {
    return failure(errc::not_found,
                   "segment: is not a queue, or its creator has not finished it (its first bytes are %016llx)",
                   static_cast<unsigned long long>(magic));
  }
  if (auto good = check(shape, static_cast<std::size_t>(about.st_size)); !good) return good.error();

  if (shape.strategy == static_cast<std::uint8_t>(strategy::named)) {
    auto name = name_of(found.fd_.get(), shape);
    // A segment that is only inspected does not need its name. Without /proc, it is called by its random name.
    if (!name && how != access::read) return name.error();
    found.name_ = name.value_or(name_for(shape));
    if (how == access::read) {
      if (auto mapped = found.map(how); !mapped) return mapped.error();
      return found;
    }
    // A flock() belongs to the open file description, and other processes may share that of `fd`. So a new description
    // is opened. Its lock ends with this handle.
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", found.fd_.get());
    const int own = ::open(path.data(), O_RDWR | O_CLOEXEC);
    if (own < 0) return failed_call(errno, "segment: opening %s again", found.name_.c_str());
    found.fd_ = descriptor(own);
    if (!lock_shared(own)) return failed_call(errno, "segment: flock of %s", found.name_.c_str());
  } else if (auto sealed = check_seals(found.fd_.get(), kSeals); !sealed) {
    return sealed.error();
  }
  if (shape.readonly_payload != 0 && how != access::read) {
    how = access::consume;
    if (!found.payload_fd_) {
      return failure(errc::bad_option,
                     "segment: its payload is read-only, in a file of its own: attach with both descriptors");
    }
    struct stat payload_about {};
    if (fstat(found.payload_fd_.get(), &payload_about) != 0) return failed_call(errno, "segment: its payload");
    if (auto good = check_file(found.payload_fd_.get(), payload_about, user); !good) return good.error();
    if (auto sealed = check_seals(found.payload_fd_.get(), kSeals | F_SEAL_FUTURE_WRITE); !sealed)
      return sealed.error();
    if (static_cast<std::uint64_t>(payload_about.st_size) != shape.buffers * shape.buffer_bytes) {
      return failure(errc::corrupt, "segment: its payload has %lld bytes",
                     static_cast<long long>(payload_about.st_size));
    }
    if (payload_about.st_ino != shape.payload_inode) {
      return failure(errc::bad_option, "segment: the second descriptor is the payload of another queue");
    }
  }
  if (auto mapped = found.map(how); !mapped) return mapped.error();
  return found;
}

result<descriptor> segment::find_named(const std::string& name, int mode) {
  if (!is_queue_name(name)) return no_queue_name(name);
  if (is_special_file(name)) return no_queue_file(name);
  // Somebody may put a FIFO in the place of the file now. Without O_NONBLOCK, open() would wait for its other end.
  const int fd = shm_open(name.c_str(), mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) {
    const int why = errno;
    if (why == ENOENT) return failure(errc::not_found, "%s: there is no queue of that name", name.c_str());
    if (why == ELOOP) return failure(errc::untrusted, "%s: is a symbolic link", name.c_str());
    // shm_open() of glibc returns EINVAL for a folder.
    if (why == EISDIR || why == EINVAL) return failure(errc::untrusted, "%s: is a folder", name.c_str());
    if (why == EACCES) return failure(errc::untrusted, "%s: belongs to another user", name.c_str());
    return failed_call(why, "%s", name.c_str());
  }
  return descriptor(fd);
}

void segment::remove_name() const {
  if (name_.empty()) return;
  // A random name never belongs to another file. A chosen name may have been removed and used again for another file.
  // So only one process at a time removes a chosen name, and only if it still belongs to this file. The others wait and
  // then check again, because the first process may be killed before it has removed the name.
  if (is_random_name(name_)) {
    if (has_name(fd_.get())) shm_unlink(name_.c_str());
    return;
  }
  struct flock byte = name_byte(F_WRLCK);
  for (int tries = 0; is_called(fd_.get(), name_) && tries < 1000; ++tries) {
    if (fcntl(fd_.get(), F_OFD_SETLK, &byte) == 0) {
      if (is_called(fd_.get(), name_)) shm_unlink(name_.c_str());
      byte = name_byte(F_UNLCK);
      (void)fcntl(fd_.get(), F_OFD_SETLK, &byte);
      return;
    }
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

result<bool> segment::take_name(const std::string& name) {
  if (renameat2(AT_FDCWD, path_of(name_).c_str(), AT_FDCWD, path_of(name).c_str(), RENAME_NOREPLACE) == 0) {
    name_ = name;
    return true;
  }
  if (errno == EEXIST) return false;
  return failed_call(errno, "segment: renaming %s to %s", name_.c_str(), name.c_str());
}

void segment::unlock_name() const {
  if (!name_.empty()) (void)flock(fd_.get(), LOCK_UN);
}

result<segment> segment::open_named(const std::string& name) {
  auto file = find_named(name, O_RDWR);
  if (!file) return file.error();
  auto found = open(std::move(file).value());
  if (found && !has_name(found->fd_.get())) {
    return failure(errc::not_found, "%s: was removed by gc() just now: try again", name.c_str());
  }
  if (found && found->name_ != name) {
    return failure(errc::untrusted, "%s: is the file of a queue that has another name, %s", name.c_str(),
                   found->name_.c_str());
  }
  return found;
}

result<void> segment::map(access how) {
  mapped_ = shape_.bytes;
  const int rights = how == access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const all = mmap(nullptr, mapped_, rights, MAP_SHARED, fd_.get(), 0);
  if (all == MAP_FAILED) return failed_call(errno, "segment: mmap of %zu bytes", mapped_);
  base_ = all;
  can_write_payload_ = how == access::all;
  if (shape_.readonly_payload != 0 && how == access::read) {
    payload_ = nullptr;
  } else if (shape_.readonly_payload != 0) {
    payload_mapped_ = shape_.buffers * shape_.buffer_bytes;
    void* const payload = mmap(nullptr, payload_mapped_, can_write_payload_ ? PROT_READ | PROT_WRITE : PROT_READ,
                               MAP_SHARED, payload_fd_.get(), 0);
    if (payload == MAP_FAILED) return failed_call(errno, "segment: mmap of its payload, %zu bytes", payload_mapped_);
    payload_map_ = payload;
    payload_ = static_cast<char*>(payload);
  } else {
    payload_ = static_cast<char*>(base_) + shape_.payload_at;
  }
  make_view();
  return {};
}

void segment::make_view() {
  char* const base = static_cast<char*>(base_);
  view_.head = reinterpret_cast<header*>(base);
  view_.participants = reinterpret_cast<participant*>(base + shape_.participants_at);
  view_.slots = reinterpret_cast<slot*>(base + shape_.slots_at);
  view_.buffers = reinterpret_cast<buffer*>(base + shape_.buffers_at);
  view_.free_map = reinterpret_cast<shared_word<std::uint64_t>*>(base + shape_.free_map_at);
  view_.payload = payload_;
  view_.lives = member_lock_view(fd_.get());
  view_.slot_count = shape_.slots;
  view_.buffer_count = shape_.buffers;
  view_.participant_count = shape_.participants;
  view_.buffer_bytes = shape_.buffer_bytes;
  view_.max_redeliver = shape_.max_redeliver;
  view_.redelivers = shape_.on_death == static_cast<std::uint8_t>(on_death::redeliver);
}

}  // namespace forksight::ipc::detail
