#include "collect/trace_file.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "collect/read_at.hpp"
#include "files/budgets.hpp"
#include "files/open_file.hpp"

namespace forksight::collect {

namespace {

using trace::RecordType;
using trace::TraceHeader;

// Reads a text field of fixed width: up to its NUL, or all of it.
std::string read_text(std::span<const std::byte> bytes, std::size_t offset, std::size_t width) {
  const char* const text = reinterpret_cast<const char*>(bytes.data() + offset);
  return {text, ::strnlen(text, width)};
}

std::vector<std::string> split_arguments(const std::string& joined) {
  std::vector<std::string> arguments;
  std::size_t start = 0;
  while (start < joined.size()) {
    const std::size_t end = std::min(joined.find('\0', start), joined.size());
    arguments.push_back(joined.substr(start, end - start));
    start = end + 1;
  }
  return arguments;
}

}  // namespace

// Reads the file and does not map it. If another process truncates a mapped file, access to the mapping raises SIGBUS.
Result<TraceFile> TraceFile::read(const files::Reader& /*reader*/, const std::filesystem::path& path) {
  const files::Descriptor file = files::open_regular(path.string());
  if (!file && errno == EINVAL) return Error{path.string() + ": not a regular file, so not a forksight trace"};
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    return Error{fmt::format("{}: cannot be opened: {}", path.string(), files::reason_of(errno))};
  }
  const auto size = std::min(static_cast<std::uint64_t>(status.st_size), trace::kMaxTraceBytes);
  std::vector<std::byte> bytes(size);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno))};
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  Result<TraceFile> parsed = parse(path.string(), std::move(bytes));
  if (parsed) {
    constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks, see stat(3type)
    parsed->owner_ = {status.st_uid, status.st_gid, {}};
    parsed->disk_bytes_ = std::min<std::uint64_t>(size, kBlock * static_cast<std::uint64_t>(status.st_blocks));
  }
  return parsed;
}

Result<TraceFile> TraceFile::parse(std::string name, std::vector<std::byte> bytes) {
  TraceFile file(std::move(name), std::move(bytes));
  if (auto error = file.read_header()) return Error{file.name_ + ": " + *error};
  file.walk_chain();
  return file;
}

std::optional<std::string> TraceFile::read_header() {
  const std::span<const std::byte> bytes = bytes_;
  const auto first_bytes = bytes.first(std::min<std::size_t>(bytes.size(), sizeof(std::uint64_t)));
  if (std::ranges::all_of(first_bytes, [](std::byte b) { return b == std::byte{0}; })) {
    // The writer stores the magic number last.
    say("its writer had not finished creating it; nothing was recorded here");
    bytes_.clear();
    return std::nullopt;
  }
  const bool has_magic = bytes.size() >= sizeof(std::uint64_t) && read_at<std::uint64_t>(bytes, 0) == trace::kMagic;
  if (!has_magic) {
    constexpr std::array<char, 8> kSwapped = {'1', 'T', 'H', 'G', 'S', 'K', 'R', 'F'};
    if (bytes.size() >= kSwapped.size() && std::memcmp(bytes.data(), kSwapped.data(), kSwapped.size()) == 0) {
      return "written on a machine with the other byte order; read it on such a machine";
    }
    return "not a forksight trace; the traces are the *.fstrace files in the folder that `forksight run` wrote";
  }
  if (bytes.size() < trace::kHeaderBytes) {
    return fmt::format("cut inside its header: {} bytes of {}; copy the whole file again", bytes.size(),
                       trace::kHeaderBytes);
  }
  const auto version = read_at<std::uint32_t>(bytes, offsetof(TraceHeader, version));
  if (version == 0 || version > trace::kVersion) {
    return fmt::format("version {}, this build reads up to {}; use the build that recorded it", version,
                       trace::kVersion);
  }
  const auto byte_order = read_at<std::uint32_t>(bytes, offsetof(TraceHeader, byte_order));
  if (byte_order != trace::kByteOrder) {
    return fmt::format("byte order mark {:#x}, expected {:#x}; read it on a machine like the one that wrote it",
                       byte_order, trace::kByteOrder);
  }
  const auto header_bytes = read_at<std::uint32_t>(bytes, offsetof(TraceHeader, header_bytes));
  const auto pointer_bytes = read_at<std::uint32_t>(bytes, offsetof(TraceHeader, pointer_bytes));
  if (header_bytes != trace::kHeaderBytes || pointer_bytes != sizeof(void*)) {
    return fmt::format("header of {} bytes and pointers of {}, expected {} and {}; the file is damaged", header_bytes,
                       pointer_bytes, trace::kHeaderBytes, sizeof(void*));
  }
  info_.pid = read_at<std::int32_t>(bytes, offsetof(TraceHeader, pid));
  info_.ppid = read_at<std::int32_t>(bytes, offsetof(TraceHeader, ppid));
  info_.start_ticks = read_at<std::uint64_t>(bytes, offsetof(TraceHeader, start_ticks));
  info_.monotonic_ns = read_at<std::uint64_t>(bytes, offsetof(TraceHeader, monotonic_ns));
  info_.rank = std::max(-1, read_at<std::int32_t>(bytes, offsetof(TraceHeader, rank)));
  info_.world_size = std::max(-1, read_at<std::int32_t>(bytes, offsetof(TraceHeader, world_size)));
  info_.host = read_text(bytes, offsetof(TraceHeader, host), sizeof(TraceHeader::host));
  info_.exe = read_text(bytes, offsetof(TraceHeader, exe), sizeof(TraceHeader::exe));
  const auto cmdline_bytes = std::min<std::size_t>(read_at<std::uint32_t>(bytes, offsetof(TraceHeader, cmdline_bytes)),
                                                   sizeof(TraceHeader::cmdline));
  const char* const cmdline = reinterpret_cast<const char*>(bytes.data() + offsetof(TraceHeader, cmdline));
  info_.cmdline = split_arguments(std::string(cmdline, cmdline_bytes));
  const auto flags = read_at<std::uint32_t>(bytes, offsetof(TraceHeader, flags));
  info_.cmdline_cut = (flags & trace::kCmdlineCut) != 0;
  info_.libc.version = {read_at<std::uint8_t>(bytes, offsetof(TraceHeader, libc_major)),
                        read_at<std::uint8_t>(bytes, offsetof(TraceHeader, libc_minor))};
  info_.libc.condition =
      static_cast<abi::ConditionKind>(read_at<std::uint8_t>(bytes, offsetof(TraceHeader, libc_condition)));
  info_.dropped_records = read_at<std::uint64_t>(bytes, offsetof(TraceHeader, dropped_records));
  info_.dropped_bytes = read_at<std::uint64_t>(bytes, offsetof(TraceHeader, dropped_bytes));
  has_gaps_ = info_.dropped_records > 0;
  if (has_gaps_) {
    say(fmt::format("{} records ({} bytes) did not fit into the trace and are missing", info_.dropped_records,
                    info_.dropped_bytes));
  }
  return std::nullopt;
}

void TraceFile::walk_chain() {
  const std::span<const std::byte> bytes = bytes_;
  if (bytes.empty()) return;
  Chain chain(bytes, trace::kHeaderBytes);
  std::uint64_t number = 0;  // records so far, incomplete ones included
  std::uint64_t holes = 0;
  std::uint64_t malformed = 0;
  std::optional<Link> link = chain.next();
  for (; link && link->kind != LinkKind::kDamaged && link->kind != LinkKind::kCut; link = chain.next()) {
    if (++number > files::kMaxTraceRecords) break;
    if (link->kind == LinkKind::kWhole) {
      records_.push_back(link->record);
    } else if (link->kind == LinkKind::kUnfinished) {
      ++holes;
      has_gaps_ = has_gaps_ || link->record.type == RecordType::kTouchEnd;
    } else {
      ++malformed;
      has_gaps_ = true;
    }
  }
  const bool is_too_long = number > files::kMaxTraceRecords;
  if (is_too_long) {
    number = files::kMaxTraceRecords;
    has_gaps_ = true;
    say(fmt::format("has more than {} records; the rest of the file is not used", number));
  }
  const bool is_damaged = link && link->kind == LinkKind::kDamaged;
  const bool ends_in_zeros = !link && bytes.size() - chain.at() >= sizeof(trace::RecordHeader);
  if (is_damaged) {
    has_gaps_ = true;
    say(
        fmt::format("damaged after record {}: the next record begins with {:#018x}, which no writer writes; the rest "
                    "of the file is not used",
                    number, link->word));
  } else if (!is_too_long && !ends_in_zeros &&
             chain.at() < read_at<std::uint64_t>(bytes, offsetof(TraceHeader, tail))) {
    has_gaps_ = true;
    say(fmt::format("cut after record {}: the file ends at byte {}, but its records went on; copy the whole file again",
                    number, bytes.size()));
  }
  if (holes > 0) {
    say(fmt::format("{} of {} records were begun and not finished (their writer was killed, or still writes)", holes,
                    number));
  }
  if (malformed > 0)
    say(fmt::format("{} of {} records are shorter than what they must hold and were skipped", malformed, number));
}

}  // namespace forksight::collect
