// The memory of a queue: made, sealed and mapped; or mapped and checked. What a segment says of itself is copied once
// to private memory, checked, and believed only from there.
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

  // With the first participant not yet in it, but ready for all.
  static result<segment> create(const options& wanted);
  // Takes the descriptor. `payload`: of a read-only payload, else none.
  static result<segment> open(descriptor fd, descriptor payload = {});
  // Only to look at: mapped read-only, and whatever its age or state.
  static result<segment> open_to_read(descriptor fd);
  // By the name that a named queue has. NUL-terminated, "/forksight-<32 hex digits>".
  static result<segment> open_named(const std::string& name);
  static result<descriptor> find_named(const std::string& name);

  const geometry& shape() const { return shape_; }
  const ring& view() const { return view_; }
  char* payload(std::uint32_t buffer) const { return payload_ + std::size_t{buffer} * shape_.buffer_bytes; }
  bool can_write_payload() const { return can_write_payload_; }
  int fd() const { return fd_.get(); }
  int payload_fd() const { return payload_fd_.get(); }
  const std::string& name() const { return name_; }
  // Of a named queue: nobody finds it by its name any more.
  void remove_name() const;
  // Gives up the lock of the descriptor itself, which gc() asks for.
  void unlock_name() const;
  std::size_t offset_of(const void* word) const {
    return static_cast<std::size_t>(static_cast<const char*>(word) - static_cast<const char*>(base_));
  }

 private:
  enum class access : std::uint8_t { read, consume, all };
  static result<segment> open(descriptor fd, descriptor payload, access how);
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

// What makes two builds agree on a segment: sizes and offsets of all that lies in it, byte order, page and line size.
std::uint32_t abi_hash(std::size_t pointer_bytes = sizeof(void*));

// The shape that the options ask for, or what is wrong with them.
result<geometry> plan(const options& wanted);
// Is it one that plan() could have made, for a file of `bytes`.
result<void> check(const geometry& shape, std::size_t bytes);

}  // namespace forksight::ipc::detail
