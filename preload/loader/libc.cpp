#include "loader/libc.hpp"

#include "forksight/abi/condition.hpp"
#include "loader/elf_view.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit abi::Libc g_libc = {};

namespace {

using VersionFunction = const char* (*)();
using InitialiseFunction = int (*)(void* condition, const void* attributes);

// Finds out which layout condition variables have. For this, it initialises a condition variable that processes may
// share. Exactly one of its words is then not zero. The place of this word differs between the layouts.
abi::ConditionKind measure_condition(InitialiseFunction initialise) {
  constexpr std::size_t kWords = abi::kConditionBytes / sizeof(std::uint32_t);
  constexpr std::uint64_t kSharedAttribute = 1;
  alignas(16) std::uint32_t words[kWords] = {};
  if (initialise(words, &kSharedAttribute) != 0) return abi::ConditionKind::kUnknown;
  abi::ConditionKind kind = abi::ConditionKind::kUnknown;
  for (std::size_t i = 0; i < kWords; ++i) {
    if (words[i] == 0) continue;
    if (words[i] != abi::Condition::kShared || kind != abi::ConditionKind::kUnknown) {
      return abi::ConditionKind::kUnknown;
    }
    kind = abi::kind_by_wrefs(i * sizeof(std::uint32_t));
  }
  return kind;
}

}  // namespace

void identify_libc(const ElfView& libc, const ElfView& threads) {
  const auto version = reinterpret_cast<VersionFunction>(libc.find_function("gnu_get_libc_version"));
  const auto initialise = reinterpret_cast<InitialiseFunction>(threads.find_function("pthread_cond_init"));
  if (version != nullptr) g_libc.version = abi::parse_version(version());
  if (initialise != nullptr) g_libc.condition = measure_condition(initialise);
}

}  // namespace forksight
