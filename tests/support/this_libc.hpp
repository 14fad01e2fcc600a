// Finds the version and the layout of the libc that the test itself runs with, by calling functions of this libc.
#pragma once

#include <gnu/libc-version.h>
#include <pthread.h>

#include <cstring>

#include "forksight/abi/condition.hpp"

namespace forksight::test {

inline abi::Libc this_libc() {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_cond_t condition;
  pthread_cond_init(&condition, &attributes);
  abi::ConditionKind kind = abi::ConditionKind::kUnknown;
  for (std::size_t at = 0; at < sizeof condition; at += sizeof(std::uint32_t)) {
    if (abi::load<std::uint32_t>(reinterpret_cast<const char*>(&condition) + at) == abi::Condition::kShared) {
      kind = abi::kind_by_wrefs(at);
    }
  }
  return {abi::parse_version(gnu_get_libc_version()), kind};
}

}  // namespace forksight::test
