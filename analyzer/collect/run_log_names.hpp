// The words of run.json for the enumerations of the model.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/model.hpp"

namespace forksight::collect {

inline constexpr std::array<std::pair<model::Liveness, std::string_view>, 8> kLivenessNames{{
    {model::Liveness::kUnknown, "unknown"},
    {model::Liveness::kAwake, "awake"},
    {model::Liveness::kDead, "dead"},
    {model::Liveness::kDeadButForSignal, "dead-but-for-signal"},
    {model::Liveness::kSpinning, "spinning"},
    {model::Liveness::kStalled, "stalled"},
    {model::Liveness::kVictim, "victim"},
    {model::Liveness::kEnded, "ended"},
}};

inline constexpr std::array<std::pair<model::WaitKind, std::string_view>, 19> kWaitKindNames{{
    {model::WaitKind::kUnknown, "unknown"},
    {model::WaitKind::kRunning, "running"},
    {model::WaitKind::kFutex, "futex"},
    {model::WaitKind::kWaitChild, "wait-child"},
    {model::WaitKind::kPipeRead, "pipe-read"},
    {model::WaitKind::kPoll, "poll"},
    {model::WaitKind::kSleep, "sleep"},
    {model::WaitKind::kOther, "other"},
    {model::WaitKind::kPipeWrite, "pipe-write"},
    {model::WaitKind::kSocketRead, "socket-read"},
    {model::WaitKind::kSocketWrite, "socket-write"},
    {model::WaitKind::kFileLock, "file-lock"},
    {model::WaitKind::kEventfd, "eventfd"},
    {model::WaitKind::kEventfdWrite, "eventfd-write"},
    {model::WaitKind::kVfork, "vfork"},
    {model::WaitKind::kTraced, "traced"},
    {model::WaitKind::kFifoOpen, "fifo-open"},
    {model::WaitKind::kSemaphore, "semaphore"},
    {model::WaitKind::kSignal, "signal"},
}};

inline constexpr std::array<std::pair<model::EnderKind, std::string_view>, 5> kEnderKindNames{{
    {model::EnderKind::kProcess, "process"},
    {model::EnderKind::kTimer, "timer"},
    {model::EnderKind::kSignal, "signal"},
    {model::EnderKind::kAnybody, "anybody"},
    {model::EnderKind::kContinue, "continue"},
}};

inline constexpr std::array<std::pair<model::FutexUse, std::string_view>, 6> kFutexUseNames{{
    {model::FutexUse::kUnknown, "unknown"},
    {model::FutexUse::kMutex, "mutex"},
    {model::FutexUse::kRwlockRead, "rwlock-read"},
    {model::FutexUse::kRwlockWrite, "rwlock-write"},
    {model::FutexUse::kJoin, "join"},
    {model::FutexUse::kGil, "gil"},
}};

inline constexpr std::array<std::pair<model::MutexType, std::string_view>, 5> kMutexTypeNames{{
    {model::MutexType::kUnknown, "unknown"},
    {model::MutexType::kNormal, "normal"},
    {model::MutexType::kRecursive, "recursive"},
    {model::MutexType::kErrorcheck, "error-checking"},
    {model::MutexType::kAdaptive, "adaptive"},
}};

inline constexpr std::array<std::pair<model::SemaphoreUse, std::string_view>, 4> kSemaphoreUseNames{{
    {model::SemaphoreUse::kUnknown, "unknown"},
    {model::SemaphoreUse::kLockHeld, "held-lock"},
    {model::SemaphoreUse::kLockWithoutHolder, "lock-without-holder"},
    {model::SemaphoreUse::kCounts, "counter"},
}};

template <class Names, class Value>
constexpr std::string_view name_of(const Names& names, Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return names.front().second;
}

template <class Names>
constexpr auto value_of(const Names& names, std::string_view text)
    -> std::optional<std::remove_cvref_t<decltype(names.front().first)>> {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace forksight::collect
