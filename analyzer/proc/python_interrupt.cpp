#include "proc/python_interrupt.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "proc/mappings.hpp"
#include "proc/process_memory.hpp"

namespace forksight::proc {
namespace {

// The table that is searched: struct { int tripped; PyObject *func; } Handlers[NSIG]
constexpr std::size_t kEntryWords = 2;
constexpr std::size_t kFunction = 1;
constexpr std::size_t kTableWords = 32 * kEntryWords;  // the part that is examined
constexpr std::uint64_t kMaxBytes = 16U << 20U;        // largest mapping that is searched
constexpr std::uint64_t kMaxOfAll = 64U << 20U;        // a process may map the interpreter many thousand times
// Python sets no handlers for these signals: all of them have the object for SIG_DFL.
constexpr std::array kDefaults = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGSEGV, SIGSTKFLT};

std::uint64_t function_at(std::span<const std::uint64_t> table, int signal) {
  return table[static_cast<std::size_t>(signal) * kEntryWords + kFunction];
}

bool is_table(std::span<const std::uint64_t> table) {
  const std::uint64_t common = function_at(table, kDefaults.front());
  if (common == 0 || common % sizeof(std::uint64_t) != 0) return false;
  for (const int signal : kDefaults) {
    if (function_at(table, signal) != common) return false;
  }
  // Each entry begins with a flag, 0 or 1, and has a function. Python ignores SIGPIPE or SIGXFSZ, so the function of
  // one of these differs from the default.
  for (int signal = 1; signal < 32; ++signal) {
    if (table[static_cast<std::size_t>(signal) * kEntryWords] > 1 || function_at(table, signal) == 0) return false;
  }
  return function_at(table, SIGPIPE) != common || function_at(table, SIGXFSZ) != common;
}

bool has_text(const ReadMemory& read, std::uint64_t pointer_at, std::string_view expected) {
  std::uint64_t text = 0;
  std::vector<char> bytes(expected.size() + 1);
  return read(pointer_at, std::as_writable_bytes(std::span(&text, 1))) &&
         read(text, std::as_writable_bytes(std::span(bytes))) && bytes.back() == '\0' &&
         std::string_view(bytes.data(), expected.size()) == expected;
}

// A PyCFunctionObject has a head and then a pointer to its PyMethodDef, which begins with the name. The last word of
// the head is the type. The head has two words in an interpreter with a GIL, and four words without a GIL. A type
// object has its head, then a size, then its name.
bool is_default_handler(const ReadMemory& read, std::uint64_t object) {
  constexpr std::array<std::uint64_t, 2> kHeads = {2, 4};
  return std::ranges::any_of(kHeads, [&](std::uint64_t words) {
    constexpr std::uint64_t kWord = sizeof(std::uint64_t);
    std::array<std::uint64_t, 2> type_and_method{};
    return read(object + (words - 1) * kWord, std::as_writable_bytes(std::span(type_and_method))) &&
           has_text(read, type_and_method[0] + (words + 1) * kWord, "builtin_function_or_method") &&
           has_text(read, type_and_method[1], "default_int_handler");
  });
}

bool is_interpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

}  // namespace

std::optional<bool> find_default_interrupt(std::span<const std::uint64_t> words, const ReadMemory& read) {
  for (std::size_t at = 0; at + kTableWords <= words.size(); ++at) {
    const auto table = words.subspan(at, kTableWords);
    if (is_table(table)) return is_default_handler(read, function_at(table, SIGINT));
  }
  return std::nullopt;
}

std::optional<bool> has_default_interrupt(std::int32_t tid) {
  const std::vector<Mapping> mappings = read_mappings(tid);
  const ProcessMemory memory(tid);
  const ReadMemory read = [&](std::uint64_t address, std::span<std::byte> out) { return memory.read(address, out); };
  std::uint64_t left = kMaxOfAll;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Mapping& mapping = mappings[i];
    // Takes the data of the module. Its zeroed part (.bss) may be an anonymous mapping behind the file's mapping.
    const bool follows =
        i > 0 && mapping.path.empty() && mappings[i - 1].end == mapping.start && is_interpreter(mappings[i - 1].path);
    const bool is_data = mapping.writable && !mapping.shared && (follows || is_interpreter(mapping.path));
    const std::uint64_t size = mapping.end - mapping.start;
    if (!is_data || size > kMaxBytes || size > left) continue;
    left -= size;
    std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
    if (!read(mapping.start, std::as_writable_bytes(std::span(words)))) continue;
    if (const auto found = find_default_interrupt(words, read)) return found;
  }
  return std::nullopt;
}

}  // namespace forksight::proc
