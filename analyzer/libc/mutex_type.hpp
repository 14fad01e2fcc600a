// The model's name for the type of a mutex.
#pragma once

#include "forksight/abi/mutex.hpp"
#include "model/wait.hpp"

namespace forksight::libc {

inline model::MutexType type_of(const abi::Mutex& mutex) {
  switch (mutex.type()) {
    case abi::Mutex::Type::kNormal: return model::MutexType::kNormal;
    case abi::Mutex::Type::kRecursive: return model::MutexType::kRecursive;
    case abi::Mutex::Type::kErrorcheck: return model::MutexType::kErrorcheck;
    case abi::Mutex::Type::kAdaptive: break;
  }
  return model::MutexType::kAdaptive;
}

}  // namespace forksight::libc
