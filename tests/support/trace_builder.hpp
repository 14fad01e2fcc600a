// Writes traces record by record, as the shim does, and also in ways in which the shim never would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "forksight/trace/format.hpp"

namespace forksight::test {

class TraceBuilder {
 public:
  static constexpr std::int32_t kPid = 1000;

  // The thread pointer that thread() records for a thread.
  static constexpr std::uint64_t pointer_of(std::int32_t tid) {
    return 0x7f00'0000'0000 + static_cast<std::uint64_t>(tid) * 4096;
  }

  TraceBuilder();  // a trace of process 1000, child of 900, on "node1", which runs /opt/app/app

  // These functions set fields of the header to any value.
  TraceBuilder& creator(std::int32_t pid, std::int32_t ppid, std::uint64_t start_ticks);
  TraceBuilder& libc(const abi::Libc& libc);  // without this call: glibc 2.36
  TraceBuilder& created_ns(std::uint64_t monotonic_ns);
  TraceBuilder& rank(std::int32_t rank, std::int32_t world_size);
  TraceBuilder& host(std::string_view host);
  TraceBuilder& exe(std::string_view path, std::string_view cmdline_with_nuls);
  TraceBuilder& dropped(std::uint64_t records, std::uint64_t bytes);
  template <class T>
  TraceBuilder& poke(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }

  // The thread that writes the next records; tid 0 is the main thread. Each record is one millisecond after the record
  // before it.
  TraceBuilder& as(std::int32_t pid, std::int32_t tid = 0);

  // These functions write a record and return its offset, by which other records refer to it.
  std::uint64_t module(std::string_view path, std::uint64_t bias, std::uint64_t start, std::uint64_t end);
  std::uint64_t stack(std::uint64_t pc, const std::vector<std::uint64_t>& words, std::uint32_t flags = 0);
  std::uint64_t thread(std::int32_t tid, std::string_view name, std::int32_t creator_tid = 0,
                       std::uint64_t start_routine = 0, std::uint64_t creation_stack = 0, std::uint32_t flags = 0);
  std::uint64_t fork(const trace::ForkRecord& fixed, const std::vector<std::uint64_t>& threads,
                     const std::vector<std::uint64_t>& runtimes);
  // `writer_tid` is the thread whose stack has no thread number in `text`.
  std::uint64_t python(trace::PythonMoment moment, std::string_view text, std::int32_t writer_tid,
                       std::uint64_t touch = 0);
  template <class T>
  std::uint64_t record(trace::RecordType type, const T& fixed,
                       trace::RecordState state = trace::RecordState::kCommitted) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::byte> payload(sizeof fixed);
    std::memcpy(payload.data(), &fixed, sizeof fixed);
    return append(type, payload, state);
  }
  std::uint64_t append(trace::RecordType type, const std::vector<std::byte>& payload,
                       trace::RecordState state = trace::RecordState::kCommitted);
  // Writes the head of a record, and nothing after it. The first word of the head is `word`, the other words are 0.
  TraceBuilder& end_with(std::uint64_t word);

  std::uint64_t size() const { return bytes_.size(); }
  // The bytes of the trace, followed by `padding` zero bytes, as in a file that has grown beyond its records.
  std::vector<std::byte> bytes(std::size_t padding = 64) const;
  void write(const std::filesystem::path& path, std::size_t padding = 64) const;

 private:
  std::vector<std::byte> bytes_;
  std::int32_t pid_ = kPid;
  std::int32_t tid_ = kPid;
  std::uint64_t time_ns_ = 5'000'000'000;
};

}  // namespace forksight::test
