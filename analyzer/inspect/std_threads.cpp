#include "inspect/std_threads.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace forksight::inspect {
namespace {

constexpr std::uint64_t kHeapWord = 8;

// Returns the part "CALLABLE, ARGUMENTS..." of the symbol
// "vtable for std::thread::_State_impl<std::thread::_Invoker<std::tuple<CALLABLE, ARGUMENTS...>>>+0x10".
// Returns "" for any other symbol.
std::string_view find_callable(std::string_view vtable) {
  constexpr std::string_view kBefore = "vtable for std::thread::_State_impl<std::thread::_Invoker<std::tuple<";
  constexpr std::string_view kAfter = ">>>";
  const std::size_t end = vtable.rfind(kAfter);
  if (!vtable.starts_with(kBefore) || end == std::string_view::npos || end < kBefore.size()) return {};
  return vtable.substr(kBefore.size(), end - kBefore.size());
}

// `piece`: the address of a chunk of glibc's heap. Returns how many of its bytes the program can use. The word before
// the chunk has its size. The word before the next chunk shows whether this chunk is in use. Returns 0 for a chunk that
// is not in use or is larger than 256 bytes, and for memory that does not belong to glibc's heap.
std::uint64_t size_of_piece(const image::Image& image, std::uint64_t piece) {
  constexpr std::uint64_t kFlags = 7;
  constexpr std::uint64_t kInUse = 1;
  constexpr std::uint64_t kLeast = 32;
  constexpr std::uint64_t kMost = 256;
  const std::uint64_t size = image.memory->value<std::uint64_t>(piece - kHeapWord).value_or(0) & ~kFlags;
  if (size < kLeast || size > kMost || size % 16 != 0) return 0;
  const auto next = image.memory->value<std::uint64_t>(piece - kHeapWord + size);
  return next && (*next & kInUse) != 0 ? size - kHeapWord : 0;
}

// A std::thread::_State begins with the pointer to its vtable, at `state`. A tuple of the callable and its arguments
// follows. Finds the function whose address is in this tuple. False if the tuple has no address of a function, or
// addresses of several functions.
bool find_function(const image::Image& image, symbols::Symbolizer& symbolizer, std::uint64_t state,
                   symbols::CodeSymbol& out) {
  const std::uint64_t bytes = size_of_piece(image, state);
  symbols::CodeSymbol only;
  for (std::uint64_t at = kHeapWord; at + kHeapWord <= bytes; at += kHeapWord) {
    const auto word = image.memory->value<std::uint64_t>(state + at);
    const proc::Mapping* const mapping = word ? image.mapping_of(*word) : nullptr;
    symbols::CodeSymbol symbol;
    if (mapping == nullptr || !mapping->executable || !symbolizer.find_code(*word, symbol)) continue;
    if (!only.function.empty() && only.function != symbol.function) return false;  // one of the two is an argument
    only = std::move(symbol);
  }
  out = std::move(only);
  return !out.function.empty();
}

}  // namespace

bool find_std_thread_start(const image::Image& image, symbols::Symbolizer& symbolizer, std::uint64_t state,
                           symbols::CodeSymbol& out) {
  const auto vtable = image.memory->value<std::uint64_t>(state);
  symbols::DataSymbol symbol;
  if (!vtable || !symbolizer.find_data(*vtable, symbol)) return false;
  std::string_view callable = find_callable(symbol.name);
  if (callable.empty()) return false;
  const std::size_t lambda = callable.find("{lambda");
  const std::size_t pointer = std::min(callable.find("(*)"), callable.find("::*)"));
  const bool is_pointer = pointer < callable.find(',') && pointer < lambda;
  if (is_pointer || callable.starts_with("std::function<")) return find_function(image, symbolizer, state, out);
  if (lambda < callable.find(',')) callable = callable.substr(0, callable.find('}', lambda) + 1);
  out.function = callable;
  out.module = std::move(symbol.module);
  return true;
}

}  // namespace forksight::inspect
