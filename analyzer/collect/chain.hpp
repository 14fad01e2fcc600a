// Reads the records in the bytes of a trace one by one. Each record begins where the record before it ends. So the
// records form a chain. A link of this chain is a complete record, an incomplete record, or the place where the chain
// breaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "forksight/trace/format.hpp"

namespace forksight::collect {

struct TraceRecord {
  std::uint64_t offset = 0;
  trace::RecordType type{};
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint64_t time_ns = 0;
  std::span<const std::byte> payload;  // for a kWhole record of a known type, at least the fixed part of this type

  template <class T>
  T fixed() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
  // Returns the variable part (tail), which follows a fixed part of type T.
  template <class T>
  std::span<const std::byte> tail() const {
    return payload.subspan(sizeof(T));
  }
  // Returns an element of an array in a tail. The caller has checked that the tail contains this element.
  template <class T>
  static T element_at(std::span<const std::byte> tail, std::size_t index) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, tail.data() + index * sizeof value, sizeof value);
    return value;
  }
};

enum class LinkKind {
  kWhole,
  kUnfinished,  // begun but not committed: the payload may be anything
  // committed, but bytes of the fixed part or of the tails are missing; the fixed part gives the sizes of the tails
  kShort,
  kDamaged,  // the record begins with a word that no writer writes: the chain ends here
  kCut,      // the record is longer than the rest of the file: the chain ends here
};

struct Link {
  LinkKind kind;
  std::uint64_t word;  // the first word of the record
  TraceRecord record;  // kDamaged, kCut: only its offset is valid
};

class Chain {
 public:
  Chain(std::span<const std::byte> trace, std::uint64_t at) : trace_(trace), at_(at) {}

  // Returns the next link. nullopt: the chain ends here, because zeros follow or the file ends. After a link of kind
  // kDamaged or kCut, the same link is returned again.
  std::optional<Link> next();
  void go_on_at(std::uint64_t offset) { at_ = offset; }
  std::uint64_t at() const { return at_; }

 private:
  std::span<const std::byte> trace_;
  std::uint64_t at_;
};

}  // namespace forksight::collect
