#include "inspect/libc_locks.hpp"

#include <array>
#include <utility>

#include "forksight/trace/libc_calls.hpp"

namespace forksight::inspect {
namespace {

#define FORKSIGHT_LIBC_LOCK(id, name, what) constexpr std::uint64_t id = trace::bit_of(trace::LibcLock::id);
#include "forksight/trace/libc_locks.def"

constexpr auto kFunctions = std::to_array<std::pair<std::string_view, std::uint64_t>>({
#define FORKSIGHT_LIBC_HOOK(name, probe, versions, locks, takes, result, parameters, arguments) {#name, locks},
#define FORKSIGHT_VARIADIC_HOOK(name, probe, versions, locks, takes) {#name, locks},
#include "forksight/trace/libc_calls.def"
});

}  // namespace

std::uint64_t libc_locks_of(std::string_view function) {
  for (const auto& [name, locks] : kFunctions) {
    if (name == function) return locks;
  }
  return 0;
}

}  // namespace forksight::inspect
