#include "symbols/stack_references.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "symbols/call_graph.hpp"
#include "symbols/names.hpp"

namespace forksight::symbols {
namespace {

constexpr std::uint64_t kWordBytes = 8;
constexpr std::uint64_t kFrameLinkSize = 16;  // the return address and the saved rbp
constexpr std::array<std::size_t, 6> kKeptByCallees = {3, kRbp, 12, 13, 14, 15};  // rbx, rbp, r12 to r15

// True if a register of the frame `at` contains the address, and the same register of the caller's frame does not. A
// register that a function does not use still has the value of the caller.
bool has_in_register(const KnownWalk& known, std::size_t at, std::uint64_t address) {
  const bool has_caller = at + 1 < known.registers.size();
  return std::ranges::any_of(kKeptByCallees, [&](std::size_t number) {
    return known.registers[at][number] == address && !(has_caller && known.registers[at + 1][number] == address);
  });
}

// True if a word from `start` to `end` on the stack contains the address. These words are the variables of a frame.
bool has_in_variable(const StackBytes& stack, std::uint64_t start, std::uint64_t end, std::uint64_t address) {
  for (std::uint64_t slot = (start + kWordBytes - 1) & ~(kWordBytes - 1); slot + kWordBytes <= end;
       slot += kWordBytes) {
    if (slot >= stack.start && slot + kWordBytes <= stack.end() && stack.read(slot) == address) return true;
  }
  return false;
}

bool calls_lock_function(AddressSpace& space, const RawFrame& frame) {
  const auto function = function_of(space, frame);
  if (!function) return false;
  const auto& branches = function->binary->code().facts(function->range).branches;
  return std::ranges::any_of(branches, [&](const Branch& branch) {
    const Symbol* const symbol =
        branch.name == nullptr ? function->binary->symbols().find_function(branch.target) : nullptr;
    const char* const name = symbol != nullptr ? symbol->name : branch.name;
    return name != nullptr && mentions_lock(readable_name(name));
  });
}

}  // namespace

bool mentions_lock(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const char* const part : {"mutex", "guard"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  for (std::size_t at = name.find("lock"); at != std::string::npos; at = name.find("lock", at + 1)) {
    if (at == 0 || (name[at - 1] != 'b' && name[at - 1] != 'c')) return true;
  }
  return false;
}

bool mentions_taking_lock(const std::string& name) {
  std::string lower = name;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  return mentions_lock(name) && !has("unlock") && !has("drop") && !has("~") && !has("wake");
}

std::optional<std::size_t> find_referring_frame(AddressSpace& space, const KnownWalk& known, const StackBytes& stack,
                                                std::uint64_t address) {
  const auto& frames = known.walk.frames;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (has_in_register(known, i, address) && calls_lock_function(space, frames[i])) return i;
    // The end of the outermost frame is not known, so its variables are not searched.
    if (i + 1 == frames.size()) break;
    // A signal handler may run on a stack of its own. Then the frames are not next to each other.
    const std::uint64_t end = std::min(frames[i + 1].sp, stack.end());
    const AddressSpace::Place place = space.locate(frames[i].lookup_address());
    const std::uint64_t saved = place ? place.binary->cfi().saved_bytes(place.address) : kFrameLinkSize;
    if (end > saved && has_in_variable(stack, frames[i].sp, end - saved, address) &&
        calls_lock_function(space, frames[i])) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace forksight::symbols
