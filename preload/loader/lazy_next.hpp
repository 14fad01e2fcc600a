// The real functions behind hooks that few programs need. Such a function is looked up when its hook is first called,
// not at the start of each program.
#pragma once

#include "loader/next.hpp"

namespace forksight {

inline void* next_lazily(void*& function, const char* name) {
  void* known = __atomic_load_n(&function, __ATOMIC_RELAXED);
  if (__builtin_expect(known != nullptr, 1)) return known;
  bool stays = false;
  known = reinterpret_cast<void*>(find_next(name, stays));
  // The program calls this hook because it was linked with the function. So the function exists.
  if (known == nullptr) __builtin_trap();
  if (stays) __atomic_store_n(&function, known, __ATOMIC_RELAXED);
  return known;
}

}  // namespace forksight

// In a hook with the name NAME: the real function, with its type.
#define FORKSIGHT_LAZY_NEXT(name)                      \
  (reinterpret_cast<decltype(&::name)>([]() -> void* { \
    static constinit void* function = nullptr;         \
    return ::forksight::next_lazily(function, #name);  \
  }()))
