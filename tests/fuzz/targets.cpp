#include "targets.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "../support/filler.hpp"
#include "collect/run_log.hpp"
#include "diagnose/diagnose.hpp"
#include "files/elf_tables.hpp"
#include "files/opener.hpp"
#include "guard/opener.hpp"
#include "guard/pack.hpp"
#include "image/elf_head.hpp"
#include "image/memory.hpp"
#include "proc/file_locks.hpp"
#include "proc/proc_text.hpp"
#include "proc/socket_names.hpp"
#include "proc/sockets.hpp"
#include "render/json.hpp"
#include "render/text.hpp"
#include "session/outside_file.hpp"
#include "symbols/binary.hpp"

namespace forksight::fuzz {
namespace {

std::string_view text_of(std::span<const unsigned char> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Makes a model from a run log. Each id in the model must be valid, whatever the run log contains.
bool run_log(std::span<const unsigned char> input) {
  auto log = collect::parse_run_log(text_of(input));
  if (!log) return false;
  model::Model model;
  collect::merge_run_log(model, std::move(log).value());
  if (!guard::are_ids_valid(model)) std::abort();
  const std::vector<Finding> findings = diagnose(model);
  return !render::render_text(model, findings).empty() || !render::render_json(model, findings).empty();
}

std::vector<Bytes> run_log_seeds() {
  collect::RunLog full;
  test::Filler().fill(full);
  collect::RunLog small;
  small.processes.resize(3);
  small.processes[0].pid = 11;
  small.processes[2].pid = 13;
  small.processes[1].liveness = model::Liveness::kDead;
  small.processes[1].pid = 12;
  small.processes[1].waits.resize(2);
  return {bytes_of(collect::to_json(full)), bytes_of(collect::to_json(small)), bytes_of(collect::to_json({}))};
}

// Reads findings from an outside.json. The findings must stay the same if they are written and read again.
bool findings(std::span<const unsigned char> input) {
  const auto kept = parse_outside(text_of(input));
  if (!kept) return false;
  const std::string again = outside_to_json(kept.value());
  const auto twice = parse_outside(again);
  if (!twice || outside_to_json(twice.value()) != again) std::abort();
  return true;
}

std::vector<Bytes> findings_seeds() {
  std::vector<KeptFinding> kept(1);
  test::Filler().fill(kept[0]);
  kept[0].finding.rule = "lock-cycle";
  kept[0].finding.processes = {0};
  return {bytes_of(outside_to_json(kept)), bytes_of(outside_to_json({}))};
}

// Parses a text of /proc. The first byte of the input says which parser gets the rest.
bool proc_text(std::span<const unsigned char> input) {
  if (input.empty()) return false;
  const std::string_view text = text_of(input.subspan(1));
  const std::size_t half = text.size() / 2;
  switch (input[0] % 14) {
    case 0: return proc::parse_syscall(text).has_value();
    case 1: return proc::parse_stat(text).has_value();
    case 2: return proc::parse_status(text).has_value();
    case 3: return proc::parse_mapping(text).has_value();
    case 4: return !proc::parse_pids(text).empty();
    case 5: return proc::parse_timer_signals(text) != 0;
    case 6: return proc::parse_pipe_link(text) || proc::parse_socket_link(text);
    case 7: return proc::parse_decimal(text) || proc::find_field(text, "flags");
    case 8: return proc::parse_file_lock(text).has_value();
    case 9: return !proc::parse_file_locks(text).empty();
    case 10: return !proc::parse_held_locks(text).empty();
    case 11: return proc::parse_tcp_peer(text.substr(0, half), text.substr(half), 17).has_value();
    case 12: return proc::parse_inet_name(text, "TCP", 17) || proc::parse_unix_name(text, 17);
    default: return proc::parse_unix_peer(std::as_bytes(input.subspan(1)), 17).has_value();
  }
}

std::vector<Bytes> proc_seeds() {
  std::vector<Bytes> seeds;
  const auto add = [&](char parser, std::string_view text) {
    seeds.push_back(bytes_of(std::string(1, parser) + std::string(text)));
  };
  add(0, "202 0x7f12 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f13\n");
  add(1,
      "17 (a (b) c) S 1 17 17 0 -1 4194304 120 0 0 0 3 4 0 0 20 0 4 0 88231 8192 512 18446744073709551615 1 1 0 0 0 0 "
      "0 0 0 0 "
      "0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  add(2,
      "Name:\tapp\nState:\tS "
      "(sleeping)\nTgid:\t17\nPid:\t17\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nNSpid:\t17\t3\n"
      "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001000\n"
      "SigCgt:\t0000000180004002\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n");
  add(3, "7f1200000000-7f1200021000 r-xp 00001000 fe:01 1234                       /usr/lib/libc.so.6");
  add(4, "12 13 14 ");
  add(5, "ID: 0\nsignal: 14/0000000000000000\nnotify: signal/pid.17\nClockID: 0\n");
  add(6, "pipe:[123]");
  add(7, "pos:\t0\nflags:\t02000002\nmnt_id:\t13\n");
  add(8, "1: POSIX  ADVISORY  WRITE 17 fe:01:1234 0 EOF");
  add(9, "1: POSIX  ADVISORY  WRITE 17 fe:01:1234 0 EOF\n1: -> FLOCK  ADVISORY  READ 18 fe:01:1234 0 12\n");
  add(10, "pos:\t0\nlock:\t1: FLOCK  ADVISORY  WRITE 17 00:2e:99 0 EOF\n");
  const std::string tcp =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 17 1 0 20 4 30 10 "
      "-1\n"
      "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 18 1 0 20 4 30 10 "
      "-1\n";
  add(11, tcp + tcp);
  add(12, tcp);
  add(12, "Num RefCount Protocol Flags Type St Inode Path\n0: 00000002 00000000 00010000 0001 01 17 /run/app.sock\n");
  add(13,
      std::string("\x28\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0\x01\x01\x01\0\x11\0\0\0\0\0\0\0\0\0\0\0\x08\0\x02\0\x12\0\0\0",
                  40));
  return seeds;
}

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Bytes> elf_seeds() { return {read_file(FUZZ_ELF_SEED)}; }

class SpanMemory final : public image::Memory {
 public:
  explicit SpanMemory(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  std::size_t read(std::uint64_t address, std::span<std::byte> out) const override {
    if (address >= bytes_.size()) return 0;
    const auto rest = std::as_bytes(bytes_.subspan(address));
    const std::size_t size = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), size, out.begin());
    return size;
  }

 private:
  std::span<const unsigned char> bytes_;
};

// Reads the input as the head of an ELF file: from a file, and from the memory of a process.
bool elf_head(std::span<const unsigned char> input) {
  static const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, input.data(), input.size(), 0) != static_cast<ssize_t>(input.size()))
    std::abort();
  const auto tables = files::read_tables(fd);
  if (tables) {
    (void)files::read_build_id(fd, tables.value());
    (void)tables->frame_bytes();
    (void)tables->unpacked_bytes();
  }
  (void)image::read_file_head(files::kCaller, path);
  return image::read_mapped_head(SpanMemory(input), 0).has_value() && tables.ok();
}

// Reads the symbols, lines, variables and unwind tables of the input.
bool dwarf(std::span<const unsigned char> input) {
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto all = std::as_bytes(input);
  bytes->assign(all.begin(), all.end());
  symbols::Module module;
  module.owner = files::kCaller;
  module.path = "/fuzz/program";
  module.end = bytes->size();
  module.bytes = bytes;
  auto elf = symbols::ElfModule::open(module);
  if (!elf) return false;
  symbols::Binary binary(std::move(elf).value());
  std::size_t named = 0;
  for (std::uint64_t address = 0x1000; address < 0x1000 + bytes->size() && address < 0x3000; address += 0x31) {
    for (const auto& frame : binary.frames_at(address)) named += frame.function.empty() ? 0U : 1U;
    (void)binary.cfi().stack_depth(address);
    (void)binary.cfi().saved_bytes(address);
  }
  (void)binary.variables();
  return named > 0;
}

std::vector<Bytes> request_seeds() {
  std::vector<Bytes> seeds;
  for (const auto& [wish, path] : {std::pair(files::Wish::kFile, "/proc/1/exe"),
                                   {files::Wish::kFile, "/usr/bin/env"},
                                   {files::Wish::kFolder, "/tmp"},
                                   {files::Wish::kStatus, "/proc/1/fd/0"},
                                   {files::Wish::kEntry, "/proc/1/task/1/syscall"},
                                   {files::Wish::kEntry, "/proc/1/fdinfo/0"},
                                   {files::Wish::kLink, "/proc/1/fd/0"},
                                   {files::Wish::kLinks, "/proc/1/fd"},
                                   {files::Wish::kLinkStatus, "/proc/1/fd/0"},
                                   {files::Wish::kCalls, "/proc/1/task"},
                                   {files::Wish::kSocket, ""}}) {
    files::Request request;
    request.wish = wish;
    request.path = path;
    request.number = 1;
    for (const bool is_owned : {false, true}) {
      if (is_owned) request.owner = files::Owner{1000, 1000, {4, 24}};
      if (is_owned) request.mapped = files::MappedFile{254, 1, 1234};
      seeds.push_back(bytes_of(files::encode_request(request)));
    }
  }
  return seeds;
}

// Reads the input as a message to the process that opens files, as a message from that process, and as one request. Passes
// the request to grant(). If grant() returns a file, this must be a file of /proc, a socket, or ELF.
bool request(std::span<const unsigned char> input) {
  (void)files::decode_requests(text_of(input));
  (void)files::decode_replies(text_of(input), {}, 200);
  const auto wish = files::decode_request(text_of(input));
  if (!wish) return false;
  const std::string bytes = files::encode_request(*wish);
  const auto again = files::decode_request(bytes);
  if (!again || files::encode_request(*again) != bytes) std::abort();
  const files::Reply reply = guard::grant(*wish);
  if (reply.bytes.size() > files::kMaxReplyText) std::abort();
  if (!reply.file) return true;
  struct stat status {};
  struct statfs place {};
  std::array<char, SELFMAG> magic{};
  if (::fstat(reply.file.get(), &status) != 0 || ::fstatfs(reply.file.get(), &place) != 0) std::abort();
  if (S_ISSOCK(status.st_mode) || place.f_type == static_cast<long>(PROC_SUPER_MAGIC)) return true;
  if (::pread(reply.file.get(), magic.data(), magic.size(), 0) != SELFMAG ||
      !std::ranges::equal(magic, std::string_view(ELFMAG, SELFMAG)))
    std::abort();
  return true;
}

constexpr Target kTargets[] = {
    {"run_log", "run.json, up to the report", run_log_seeds, run_log, true},
    {"findings", "outside.json", findings_seeds, findings, true},
    {"proc", "texts of /proc and answers of the kernel", proc_seeds, proc_text, false},
    {"elf_head", "ELF headers, sections and notes", elf_seeds, elf_head, false},
    {"requests", "requests to the process that opens files", request_seeds, request, false},
    {"dwarf", "symbols, lines, variables and unwind tables", elf_seeds, dwarf, false},
};

}  // namespace

std::vector<Target> targets() {
  std::vector<Target> all(std::begin(kTargets), std::end(kTargets));
  const auto others = structure_targets();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::optional<Target> find_target(const std::string& name) {
  for (const Target& target : targets()) {
    if (target.name == name) return target;
  }
  return std::nullopt;
}

}  // namespace forksight::fuzz
