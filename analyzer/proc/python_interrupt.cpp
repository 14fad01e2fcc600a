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

// The table for which the memory is searched: struct { int tripped; PyObject *func; } Handlers[NSIG]
constexpr std::size_t kEntryWords = 2;
constexpr std::size_t kFunction = 1;
constexpr std::size_t kTableWords = 32 * kEntryWords;  // the part of the table that is examined
constexpr std::uint64_t kMaxBytes = 16U << 20U;        // the largest mapping that is searched
constexpr std::uint64_t kMaxOfAll = 64U << 20U;        // a process may map the interpreter many thousand times

std::uint64_t function_at(std::span<const std::uint64_t> table, int signal) {
  return table[static_cast<std::size_t>(signal) * kEntryWords + kFunction];
}

bool has_text(const ReadMemory& read, std::uint64_t pointer_at, std::string_view expected) {
  std::uint64_t text = 0;
  std::vector<char> bytes(expected.size() + 1);
  return read(pointer_at, std::as_writable_bytes(std::span(&text, 1))) &&
         read(text, std::as_writable_bytes(std::span(bytes))) && bytes.back() == '\0' &&
         std::string_view(bytes.data(), expected.size()) == expected;
}

// The head of an object has two words in an interpreter with a GIL, and four words without a GIL. The last word of the
// head is the type. A type object has its head, then a size, then its name.
constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::array<std::uint64_t, 2> kHeads = {2, 4};

bool is_of_type(const ReadMemory& read, std::uint64_t object, std::uint64_t head_words, std::string_view type_name) {
  std::uint64_t type = 0;
  return read(object + (head_words - 1) * kWord, std::as_writable_bytes(std::span(&type, 1))) &&
         has_text(read, type + (head_words + 1) * kWord, type_name);
}

bool is_number(const ReadMemory& read, std::uint64_t object) {
  return std::ranges::any_of(kHeads, [&](std::uint64_t words) { return is_of_type(read, object, words, "int"); });
}

// The entry of a signal is None if C code had installed a handler before the
// interpreter began. faulthandler is such code.
bool is_of_script(const ReadMemory& read, std::uint64_t object) {
  const bool is_none =
      std::ranges::any_of(kHeads, [&](std::uint64_t words) { return is_of_type(read, object, words, "NoneType"); });
  return object != 0 && !is_none && !is_number(read, object);
}

// A PyCFunctionObject has its head and then a pointer to its PyMethodDef, which begins with the name.
bool is_default_handler(const ReadMemory& read, std::uint64_t object) {
  return std::ranges::any_of(kHeads, [&](std::uint64_t words) {
    std::uint64_t method = 0;
    return is_of_type(read, object, words, "builtin_function_or_method") &&
           read(object + words * kWord, std::as_writable_bytes(std::span(&method, 1))) &&
           has_text(read, method, "default_int_handler");
  });
}

// True if the words have what every table of handlers has. The entries for SIGKILL and SIGSTOP have the same object, a
// number. The first entry has no function, because there is no signal 0. The entries of most signals may differ,
// because a program may have begun with ignored signals, and a script may set handlers. But nobody can change SIGKILL
// and SIGSTOP: both have the object for SIG_DFL, which is the number 0.
bool is_table(std::span<const std::uint64_t> table, const ReadMemory& read) {
  const std::uint64_t common = function_at(table, SIGKILL);
  if (common == 0 || common % kWord != 0 || function_at(table, SIGSTOP) != common || function_at(table, 0) != 0)
    return false;
  for (int signal = 1; signal < 32; ++signal) {  // each entry begins with a flag, 0 or 1
    if (table[static_cast<std::size_t>(signal) * kEntryWords] > 1 || function_at(table, signal) == 0) return false;
  }
  return is_number(read, common);
}

bool is_interpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

}  // namespace

std::optional<PythonHandlers> find_python_handlers(std::span<const std::uint64_t> words, const ReadMemory& read) {
  for (std::size_t at = 0; at + kTableWords <= words.size(); ++at) {
    const auto table = words.subspan(at, kTableWords);
    if (!is_table(table, read)) continue;
    return PythonHandlers{is_default_handler(read, function_at(table, SIGINT)),
                          is_of_script(read, function_at(table, SIGABRT))};
  }
  return std::nullopt;
}

std::optional<PythonHandlers> read_python_handlers(std::int32_t tid) {
  const std::vector<Mapping> mappings = read_mappings(tid);
  const ProcessMemory memory(tid);
  const ReadMemory read = [&](std::uint64_t address, std::span<std::byte> out) { return memory.read(address, out); };
  std::uint64_t left = kMaxOfAll;
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    const Mapping& mapping = mappings[i];
    // Searches the data of the interpreter. The zeroed part of the data (.bss) may be an anonymous mapping directly
    // after the file's mapping.
    const bool follows =
        i > 0 && mapping.path.empty() && mappings[i - 1].end == mapping.start && is_interpreter(mappings[i - 1].path);
    const bool is_data = mapping.writable && !mapping.shared && (follows || is_interpreter(mapping.path));
    const std::uint64_t size = mapping.end - mapping.start;
    if (!is_data || size > kMaxBytes || size > left) continue;
    left -= size;
    std::vector<std::uint64_t> words(size / sizeof(std::uint64_t));
    if (!read(mapping.start, std::as_writable_bytes(std::span(words)))) continue;
    if (const auto found = find_python_handlers(words, read)) return found;
  }
  return std::nullopt;
}

}  // namespace forksight::proc
