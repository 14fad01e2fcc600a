// A library with a local static variable, which is initialised at the first call of its function. With OWN_RUNTIME the
// library itself defines the functions that guard the initialisation (__cxa_guard_...), and counts their calls.
#include <cstdint>

#ifdef OWN_RUNTIME
namespace {
int g_calls;
}
extern "C" {
// The layout is that of libc++abi: byte 0 means done, bit 1 of byte 1 means in progress.
int __cxa_guard_acquire(std::uint64_t* guard) {
  ++g_calls;
  if ((*guard & 1) != 0) return 0;
  *guard = 0x200;
  return 1;
}
void __cxa_guard_release(std::uint64_t* guard) {
  ++g_calls;
  *guard = 0x101;
}
void __cxa_guard_abort(std::uint64_t* guard) { *guard = 0; }
int own_calls() { return g_calls; }
}
#endif

namespace {

struct Value {
  Value() : number(*&seed) {}
  static inline volatile int seed = 42;
  int number;
};

}  // namespace

extern "C" int use_static() {
  static Value value;
  return value.number;
}
