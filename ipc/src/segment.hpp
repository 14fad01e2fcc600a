// The memory of a queue. This class creates, seals and maps it, or maps and checks a segment that another process has
// created. The class copies the facts in the header once to private memory, checks them, and uses only the copy.
#pragma once

#include <cstddef>
#include <string>

#include "descriptor.hpp"
#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"
#include "ring.hpp"

namespace forksight::ipc::detail {

class segment {
 public:
  segment() = default;
  segment(segment&& other) noexcept { *this = std::move(other); }
  segment& operator=(segment&& other) noexcept;
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;
  ~segment();

  // Creates a segment without participants.
  static result<segment> create(const options& wanted);
  // These two functions are for a descriptor that the user has passed. check_descriptor() checks that it refers to a
  // regular file. copy_of() does the same, and returns a copy. The errors name the number of the user's descriptor.
  static result<void> check_descriptor(int fd);
  static result<descriptor> copy_of(int fd);
  // Takes over the descriptor. `payload`: the descriptor of a read-only payload, else none.
  static result<segment> open(descriptor fd, descriptor payload = {});
  // Opens a segment of `user` only to inspect it. The mapping is read-only. The queue may be shut down or poisoned.
  static result<segment> open_to_read(descriptor fd, uid_t user);
  // Opens a named queue by its name, as names.hpp describes it.
  static result<segment> open_named(const std::string& name);
  // Opens the file of a named queue. `mode`: O_RDONLY or O_RDWR.
  static result<descriptor> find_named(const std::string& name, int mode);

  const geometry& shape() const { return shape_; }
  const ring& view() const { return view_; }
  char* payload(std::uint32_t buffer) const { return payload_ + std::size_t{buffer} * shape_.buffer_bytes; }
  bool can_write_payload() const { return can_write_payload_; }
  int fd() const { return fd_.get(); }
  int payload_fd() const { return payload_fd_.get(); }
  const std::string& name() const { return name_; }
  // Removes the name of a named queue, so that no process can attach by this name any more.
  void remove_name() const;
  // Replaces the random name of a queue by this chosen name, in one step. Returns false if the chosen name exists.
  result<bool> take_name(const std::string& name);
  // Releases the flock() of the descriptor itself. gc() then sees only the locks of the members.
  void unlock_name() const;
  std::size_t offset_of(const void* word) const {
    return static_cast<std::size_t>(static_cast<const char*>(word) - static_cast<const char*>(base_));
  }

 private:
  enum class access : std::uint8_t { read, consume, all };
  static result<segment> open(descriptor fd, descriptor payload, access how, uid_t user);
  result<void> map(access how);
  void make_view();

  descriptor fd_, payload_fd_;
  std::string name_;
  geometry shape_{};
  ring view_;
  void* base_ = nullptr;
  std::size_t mapped_ = 0;
  void* payload_map_ = nullptr;
  std::size_t payload_mapped_ = 0;
  char* payload_ = nullptr;
  bool can_write_payload_ = false;
};

// A hash of the properties in which two builds must agree to share a segment: the sizes and offsets of its parts, byte
// order, page size and line size.
std::uint32_t abi_hash(std::size_t pointer_bytes = sizeof(void*));

// The shape that the options ask for, or an error about the options.
result<geometry> plan(const options& wanted);
// Checks that plan() could have made this shape, for a file of `bytes` bytes.
result<void> check(const geometry& shape, std::size_t bytes);

}  // namespace forksight::ipc::detail
