#include "proc/proc_text.hpp"

#include <algorithm>
#include <charconv>

#include "proc/words.hpp"

namespace forksight::proc {
namespace {

bool parse_hex(std::string_view text, std::uint64_t& out) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return parse_number(text, out, 16);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> parse_inode_link(std::string_view link, std::string_view prefix) {
  if (!link.starts_with(prefix) || !link.ends_with(']')) return std::nullopt;
  std::uint64_t inode = 0;
  if (!parse_number(link.substr(prefix.size(), link.size() - prefix.size() - 1), inode)) return std::nullopt;
  return inode;
}

bool find_hex(std::string_view text, std::string_view name, std::uint64_t& out) {
  const auto value = find_field(text, name);
  return value && parse_hex(*value, out);
}

template <class T>
bool find_number(std::string_view text, std::string_view name, T& out) {
  const auto value = find_field(text, name);
  return value && parse_number(*value, out);
}

}  // namespace

std::optional<Syscall> parse_syscall(std::string_view text) {
  Syscall call;
  std::string_view word = next_word(text);
  if (word == "running") {
    call.running = true;
    return trim(text).empty() ? std::optional(call) : std::nullopt;
  }
  if (!parse_number(word, call.number)) return std::nullopt;
  call.in_syscall = call.number >= 0;
  if (call.in_syscall) {
    for (std::uint64_t& arg : call.args) {
      if (!parse_hex(next_word(text), arg)) return std::nullopt;
    }
  }
  if (!parse_hex(next_word(text), call.sp) || !parse_hex(next_word(text), call.pc)) return std::nullopt;
  if (!trim(text).empty()) return std::nullopt;
  return call;
}

std::optional<Stat> parse_stat(std::string_view text) {
  // The name may contain anything, blanks and parentheses included. It ends at the last ')'.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  Stat stat;
  if (!parse_number(trim(text.substr(0, open)), stat.pid)) return std::nullopt;
  stat.comm = std::string(text.substr(open + 1, close - open - 1));
  std::string_view rest = text.substr(close + 1);
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  constexpr int kState = 3, kParent = 4, kFlags = 9, kChildFaults = 11, kUser = 14, kSystem = 15, kThreads = 20,
                kStart = 22, kExitSignal = 38, kProcessor = 39;
  for (int field = kState; field <= kProcessor; ++field) {
    const std::string_view word = next_word(rest);
    bool good = !word.empty() || field > kStart;
    if (field == kState) {
      good = word.size() == 1;
      if (good) stat.state = word.front();
    }
    if (field == kParent) good = parse_number(word, stat.ppid);
    if (field == kFlags) good = parse_number(word, stat.flags);
    if (field == kChildFaults) good = parse_number(word, stat.child_faults);
    if (field == kUser) good = parse_number(word, user);
    if (field == kSystem) good = parse_number(word, system);
    if (field == kThreads) good = parse_number(word, stat.threads);
    if (field == kStart) good = parse_number(word, stat.start_ticks);
    if (std::int32_t number = 0; field == kExitSignal && parse_number(word, number)) stat.exit_signal = number;
    if (std::uint32_t number = 0; field == kProcessor && parse_number(word, number)) stat.processor = number;
    if (!good) return std::nullopt;
  }
  stat.cpu_ticks = user + system;
  return stat;
}

bool is_zombie(const Stat& stat) { return (stat.state == 'Z' || stat.state == 'X') && stat.threads == 1; }

std::optional<Status> parse_status(std::string_view text) {
  Status status;
  const auto name = find_field(text, "Name");
  const auto state = find_field(text, "State");
  if (!name || !state || state->empty()) return std::nullopt;
  status.name = std::string(*name);
  status.state = state->front();
  const bool whole = find_number(text, "TracerPid", status.tracer) && find_hex(text, "SigPnd", status.pending) &&
                     find_hex(text, "ShdPnd", status.shared_pending) && find_hex(text, "SigBlk", status.blocked) &&
                     find_hex(text, "SigCgt", status.caught) &&
                     find_number(text, "voluntary_ctxt_switches", status.voluntary) &&
                     find_number(text, "nonvoluntary_ctxt_switches", status.nonvoluntary);
  if (!whole) return std::nullopt;
  (void)find_hex(text, "SigIgn", status.ignored);
  std::string_view numbers = find_field(text, "NSpid").value_or("");
  std::uint32_t depth = 0;
  for (std::string_view word = next_word(numbers); parse_number(word, status.own_tid); word = next_word(numbers)) {
    ++depth;
  }
  status.ns_depth = std::max(depth, 1U);
  return status;
}

bool is_ending(const Stat& stat, const Status& status) {
  // SIGKILL: the kernel sends it to each thread when a signal ends the process
  constexpr std::uint64_t kKill = 1U << 8U;
  return stat.state == 'Z' || stat.state == 'X' || (stat.flags & kExiting) != 0 || (status.pending & kKill) != 0;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping mapping;
  const std::string_view range = next_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  if (!parse_hex(range.substr(0, dash), mapping.start) || !parse_hex(range.substr(dash + 1), mapping.end)) {
    return std::nullopt;
  }
  const std::string_view rights = next_word(line);
  if (rights.size() != 4 || mapping.end < mapping.start) return std::nullopt;
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.executable = rights[2] == 'x';
  mapping.shared = rights[3] != 'p';
  if (!parse_hex(next_word(line), mapping.offset)) return std::nullopt;
  mapping.device = std::string(next_word(line));
  if (!parse_number(next_word(line), mapping.inode)) return std::nullopt;
  mapping.path = std::string(trim(line));
  return mapping;
}

std::vector<std::int32_t> parse_pids(std::string_view text) {
  std::vector<std::int32_t> pids;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    std::int32_t pid = 0;
    if (parse_number(word, pid) && pid > 0) pids.push_back(pid);
  }
  return pids;
}

std::uint64_t parse_timer_signals(std::string_view text) {
  constexpr std::string_view kSignal = "signal: ";
  std::uint64_t signals = 0;
  for (std::size_t at = text.find(kSignal); at != std::string_view::npos; at = text.find(kSignal, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at + kSignal.size(), end, number);
    const bool is_whole = error == std::errc{} && stop != end && *stop == '/';
    if (is_whole && number >= 1 && number <= 64) signals |= 1ULL << (number - 1);
  }
  return signals;
}

std::optional<std::uint64_t> parse_pipe_link(std::string_view link) { return parse_inode_link(link, "pipe:["); }
std::optional<std::uint64_t> parse_socket_link(std::string_view link) { return parse_inode_link(link, "socket:["); }
std::string name_socket(std::uint64_t inode) { return "socket:[" + std::to_string(inode) + "]"; }

std::optional<std::int64_t> parse_decimal(std::string_view text) {
  std::int64_t number = 0;
  return parse_number(trim(text), number) ? std::optional(number) : std::nullopt;
}

std::optional<std::string_view> find_field(std::string_view text, std::string_view name) {
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view line = text.substr(start, end - start);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return trim(line.substr(name.size() + 1));
    }
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace forksight::proc
