#include "support/trace_builder.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace forksight::test {

using trace::TraceHeader;

namespace {

void append_bytes(std::vector<std::byte>& to, const void* from, std::size_t count) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  to.insert(to.end(), bytes, bytes + count);
}

}  // namespace

TraceBuilder::TraceBuilder() : bytes_(trace::kHeaderBytes) {
  poke(offsetof(TraceHeader, magic), trace::kMagic);
  poke(offsetof(TraceHeader, version), trace::kVersion);
  poke(offsetof(TraceHeader, header_bytes), trace::kHeaderBytes);
  poke(offsetof(TraceHeader, byte_order), trace::kByteOrder);
  poke(offsetof(TraceHeader, pointer_bytes), std::uint32_t{sizeof(void*)});
  poke(offsetof(TraceHeader, capacity), trace::kMaxTraceBytes);
  libc({{2, 36}, abi::ConditionKind::kWithReferences});
  created_ns(1'000'000'000);
  creator(kPid, 900, 777);
  rank(-1, -1);
  host("node1");
  exe("/opt/app/app", std::string_view("./app\0--fast\0", 13));
}

TraceBuilder& TraceBuilder::creator(std::int32_t pid, std::int32_t ppid, std::uint64_t start_ticks) {
  poke(offsetof(TraceHeader, pid), pid);
  poke(offsetof(TraceHeader, ppid), ppid);
  poke(offsetof(TraceHeader, start_ticks), start_ticks);
  return as(pid);
}

TraceBuilder& TraceBuilder::libc(const abi::Libc& libc) {
  poke(offsetof(TraceHeader, libc_major), libc.version.major);
  poke(offsetof(TraceHeader, libc_minor), libc.version.minor);
  return poke(offsetof(TraceHeader, libc_condition), libc.condition);
}

TraceBuilder& TraceBuilder::created_ns(std::uint64_t monotonic_ns) {
  time_ns_ = monotonic_ns;
  return poke(offsetof(TraceHeader, monotonic_ns), monotonic_ns);
}

TraceBuilder& TraceBuilder::rank(std::int32_t rank, std::int32_t world_size) {
  poke(offsetof(TraceHeader, rank), rank);
  return poke(offsetof(TraceHeader, world_size), world_size);
}

TraceBuilder& TraceBuilder::host(std::string_view host) {
  auto* const at = bytes_.data() + offsetof(TraceHeader, host);
  std::memset(at, 0, sizeof(TraceHeader::host));
  std::memcpy(at, host.data(), std::min(host.size(), sizeof(TraceHeader::host)));
  return *this;
}

TraceBuilder& TraceBuilder::exe(std::string_view path, std::string_view cmdline) {
  auto* const at = bytes_.data() + offsetof(TraceHeader, exe);
  std::memset(at, 0, sizeof(TraceHeader::exe) + sizeof(TraceHeader::cmdline));
  std::memcpy(at, path.data(), std::min(path.size(), sizeof(TraceHeader::exe)));
  std::memcpy(bytes_.data() + offsetof(TraceHeader, cmdline), cmdline.data(),
              std::min(cmdline.size(), sizeof(TraceHeader::cmdline)));
  return poke(offsetof(TraceHeader, cmdline_bytes), static_cast<std::uint32_t>(cmdline.size()));
}

TraceBuilder& TraceBuilder::dropped(std::uint64_t records, std::uint64_t count) {
  poke(offsetof(TraceHeader, dropped_records), records);
  return poke(offsetof(TraceHeader, dropped_bytes), count);
}

TraceBuilder& TraceBuilder::as(std::int32_t pid, std::int32_t tid) {
  pid_ = pid;
  tid_ = tid == 0 ? pid : tid;
  return *this;
}

std::uint64_t TraceBuilder::append(trace::RecordType type, const std::vector<std::byte>& payload,
                                   trace::RecordState state) {
  const std::uint64_t offset = bytes_.size();
  constexpr std::size_t kAlign = trace::kRecordAlign;
  const std::size_t size = (sizeof(trace::RecordHeader) + payload.size() + kAlign - 1) / kAlign * kAlign;
  bytes_.resize(offset + size);
  time_ns_ += 1'000'000;
  poke(offset, trace::pack_word(static_cast<std::uint32_t>(size), type, state));
  poke(offset + offsetof(trace::RecordHeader, pid), pid_);
  poke(offset + offsetof(trace::RecordHeader, tid), tid_);
  poke(offset + offsetof(trace::RecordHeader, time_ns), time_ns_);
  std::copy(payload.begin(), payload.end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(offset + sizeof(trace::RecordHeader)));
  return offset;
}

TraceBuilder& TraceBuilder::end_with(std::uint64_t word) {
  append_bytes(bytes_, &word, sizeof word);
  bytes_.resize(bytes_.size() + sizeof(trace::RecordHeader) - sizeof word);
  return *this;
}

std::uint64_t TraceBuilder::module(std::string_view path, std::uint64_t bias, std::uint64_t start, std::uint64_t end) {
  const trace::ModuleRecord fixed{bias, start, end, 0, static_cast<std::uint32_t>(path.size()), {}};
  std::vector<std::byte> payload;
  append_bytes(payload, &fixed, sizeof fixed);
  append_bytes(payload, path.data(), path.size());
  return append(trace::RecordType::kModule, payload);
}

std::uint64_t TraceBuilder::stack(std::uint64_t pc, const std::vector<std::uint64_t>& words, std::uint32_t flags) {
  const auto bytes = static_cast<std::uint32_t>(words.size() * sizeof(std::uint64_t));
  const trace::StackRecord fixed{pc, 0x7ffc'0000'0000, 0, bytes, flags};
  std::vector<std::byte> payload;
  append_bytes(payload, &fixed, sizeof fixed);
  append_bytes(payload, words.data(), bytes);
  return append(trace::RecordType::kStack, payload);
}

std::uint64_t TraceBuilder::thread(std::int32_t tid, std::string_view name, std::int32_t creator_tid,
                                   std::uint64_t start_routine, std::uint64_t creation_stack, std::uint32_t flags) {
  trace::ThreadRecord fixed{tid, creator_tid, start_routine, creation_stack, 0, flags, 0, {}, pointer_of(tid)};
  std::memcpy(fixed.name, name.data(), std::min(name.size(), sizeof fixed.name));
  return record(trace::RecordType::kThread, fixed);
}

std::uint64_t TraceBuilder::python(trace::PythonMoment moment, std::string_view text, std::int32_t writer_tid,
                                   std::uint64_t touch) {
  const trace::PythonStacksRecord fixed{
      touch, pointer_of(writer_tid), moment, static_cast<std::uint32_t>(text.size()), 0, 0};
  std::vector<std::byte> payload;
  append_bytes(payload, &fixed, sizeof fixed);
  append_bytes(payload, text.data(), text.size());
  return append(trace::RecordType::kPythonStacks, payload);
}

std::uint64_t TraceBuilder::fork(const trace::ForkRecord& fixed, const std::vector<std::uint64_t>& threads,
                                 const std::vector<std::uint64_t>& runtimes) {
  trace::ForkRecord counted = fixed;
  counted.thread_count = static_cast<std::uint32_t>(threads.size());
  counted.runtime_count = static_cast<std::uint32_t>(runtimes.size());
  std::vector<std::byte> payload;
  append_bytes(payload, &counted, sizeof counted);
  for (const std::uint64_t thread : threads) {
    const trace::ForkThread entry{thread, 0, trace::WaitKind::kNone, 0};
    append_bytes(payload, &entry, sizeof entry);
  }
  append_bytes(payload, runtimes.data(), runtimes.size() * sizeof(std::uint64_t));
  return append(trace::RecordType::kFork, payload);
}

std::vector<std::byte> TraceBuilder::bytes(std::size_t padding) const {
  std::vector<std::byte> all = bytes_;
  all.resize(all.size() + padding);
  const std::uint64_t allocated = all.size();
  const std::uint64_t tail = bytes_.size();
  std::memcpy(all.data() + offsetof(TraceHeader, allocated), &allocated, sizeof allocated);
  std::memcpy(all.data() + offsetof(TraceHeader, tail), &tail, sizeof tail);
  return all;
}

void TraceBuilder::write(const std::filesystem::path& path, std::size_t padding) const {
  const std::vector<std::byte> all = bytes(padding);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace forksight::test
