// The wrappers of the CUDA driver's entry points. Most wrappers are a few loads, a branch and a jump, except in the
// forked child of a process that had initialised the driver. Arguments are passed on as words, unchanged. A function
// may take fewer words than its wrapper. Then the other words are whatever the registers contained. All arguments are
// integers and pointers, so each is in a register or on the stack as one word (x86-64 psABI 3.2.3).
#include "cuda/cuda.hpp"
#include "cuda/cuda_ipc.hpp"
#include "guest/clock.hpp"
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "record/function_touch.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using Word = std::uint64_t;

// The result of a call if the library of the real function was closed before the call: CUDA_ERROR_NO_DEVICE.
constexpr int kNoDevice = 100;

// Calls cuGetProcAddress(symbol, function, ...), and puts a wrapper in place of the function that the driver returned.
template <class... Rest>
int get_address(std::uint64_t function, Word symbol, Word out, Rest... rest) {
  const int result = reinterpret_cast<int (*)(Word, Word, Rest...)>(function)(symbol, out, rest...);
  auto* const found = reinterpret_cast<std::uint64_t*>(out);
  const auto* const name = reinterpret_cast<const char*>(symbol);
  if (result != 0 || found == nullptr || name == nullptr || *found == 0) return result;
  const std::uint64_t wrapped = wrap_cuda(name, *found, trace::CudaWay::kGetProcAddress);
  if (wrapped != *found) *found = wrapped;
  return result;
}

constexpr bool is_shared_call(CudaEntry entry) {
  return is_ipc_call(entry) || is_ipc_free(entry) || is_ipc_context(entry) || ipc_addresses(entry) != 0;
}

// Handles calls about memory that may be shared with another process. The child of a process that had initialised the
// driver may give back what it inherited. So in such a child, calls that free or close memory, and calls that end a
// context, are not recorded as uses of CUDA.
template <class... Words>
__attribute__((noinline, cold)) int call_shared(CudaEntry entry, std::uint64_t function, Frame frame, Words... words) {
  const Word list[] = {words...};
  const CudaWords call{list, sizeof...(words)};
  const bool gives_back = is_ipc_free(entry) || is_ipc_context(entry) || entry == CudaEntry::cuIpcCloseMemHandle;
  const std::uint64_t touch = g_watch_cuda && !gives_back ? touch_cuda(entry, function, frame.site()) : 0;
  const std::uint32_t addresses = ipc_addresses(entry);
  if (addresses != 0 && g_ipc_imports.load(std::memory_order_relaxed) != 0) note_ipc_use(addresses, call);
  const std::uint64_t record = addresses == 0 ? begin_ipc(entry, call, frame.site()) : 0;
  const std::uint64_t began_ns = now_ns();
  const int result = reinterpret_cast<int (*)(Words...)>(function)(words...);
  if (addresses == 0) end_ipc(entry, call, record, began_ns, result, frame.site());
  end_function_touch(touch, result);
  return result;
}

// Handles the calls that are not the common case. There are four kinds:
// - a call in the forked child of a process that had initialised the driver (g_watch_cuda)
// - a call of a function that is examined in every process (is_always_examined)
// - a call about memory that is shared between processes (is_ipc_watched)
// - a call whose real function is gone, because its library was closed (`function` is 0)
template <class... Words>
__attribute__((noinline, cold)) int call_slow(CudaEntry entry, std::uint32_t wrapper, Frame frame, Words... words) {
  initialise();
  const std::uint64_t function = g_cuda_reals[static_cast<std::uint32_t>(entry)][wrapper].address;
  if (function == 0) return kNoDevice;
  if (entry == CudaEntry::cuGetProcAddress || entry == CudaEntry::cuGetProcAddress_v2) {
    return get_address(function, words...);
  }
  if (is_shared_call(entry)) return call_shared(entry, function, frame, words...);
  const std::uint64_t touch = g_watch_cuda ? touch_cuda(entry, function, frame.site()) : 0;
  const int result = reinterpret_cast<int (*)(Words...)>(function)(words...);
  end_function_touch(touch, result);
  if (result == 0 && entry == CudaEntry::cuInit) {
    note_cuda_init(g_cuda_ways[static_cast<std::uint32_t>(entry)][wrapper], frame.site());
  }
  if (result == 0 && entry == CudaEntry::cuDevicePrimaryCtxRetain) note_cuda_context();
  return result;
}

constexpr bool is_always_examined(CudaEntry entry) {
  return entry == CudaEntry::cuInit || entry == CudaEntry::cuGetProcAddress ||
         entry == CudaEntry::cuGetProcAddress_v2 || entry == CudaEntry::cuDevicePrimaryCtxRetain;
}

inline bool is_ipc_watched(CudaEntry entry) {
  if (is_ipc_call(entry)) return true;
  if (is_ipc_free(entry)) return g_ipc_exports.load(std::memory_order_relaxed) != 0;
  return (is_ipc_context(entry) || ipc_addresses(entry) != 0) && g_ipc_imports.load(std::memory_order_relaxed) != 0;
}

template <CudaEntry entry, std::uint32_t wrapper, class... Words>
__attribute__((always_inline)) inline int call(Frame frame, Words... words) {
  const std::uint64_t function =
      g_cuda_reals[static_cast<std::uint32_t>(entry)][wrapper].address.load(std::memory_order_acquire);
  if (is_always_examined(entry) || FORKSIGHT_UNLIKELY(function == 0 || g_watch_cuda || is_ipc_watched(entry))) {
    return call_slow(entry, wrapper, frame, words...);
  }
  return reinterpret_cast<int (*)(Words...)>(function)(words...);
}

}  // namespace

}  // namespace forksight

using namespace forksight;

#define FORKSIGHT_WORDS_6 Word a, Word b, Word c, Word d, Word e, Word f
#define FORKSIGHT_WORDS_10 FORKSIGHT_WORDS_6, Word g, Word h, Word i, Word j
#define FORKSIGHT_WORDS_11 FORKSIGHT_WORDS_10, Word k
#define FORKSIGHT_WORDS_14 FORKSIGHT_WORDS_11, Word l, Word m, Word n
#define FORKSIGHT_PASS_6 a, b, c, d, e, f
#define FORKSIGHT_PASS_10 FORKSIGHT_PASS_6, g, h, i, j
#define FORKSIGHT_PASS_11 FORKSIGHT_PASS_10, k
#define FORKSIGHT_PASS_14 FORKSIGHT_PASS_11, l, m, n

#define FORKSIGHT_CUDA_HOOK(name, words)                                              \
  template <std::uint32_t wrapper>                                                    \
  static int handed_out_##name(FORKSIGHT_WORDS_##words) {                             \
    return call<CudaEntry::name, wrapper>(FORKSIGHT_FRAME(), FORKSIGHT_PASS_##words); \
  }
#include "cuda/cuda_hooks.def"

namespace forksight {

// This is a switch and not a table of pointers, because the loader would have to relocate the pointers at every start
// of every program.
std::uint64_t cuda_wrapper(CudaEntry entry, std::uint32_t wrapper) {
  switch (entry) {
#define FORKSIGHT_CUDA_HOOK(name, words)                                           \
  case CudaEntry::name:                                                            \
    return wrapper == 0   ? reinterpret_cast<std::uint64_t>(&handed_out_##name<0>) \
           : wrapper == 1 ? reinterpret_cast<std::uint64_t>(&handed_out_##name<1>) \
           : wrapper == 2 ? reinterpret_cast<std::uint64_t>(&handed_out_##name<2>) \
                          : reinterpret_cast<std::uint64_t>(&handed_out_##name<3>);
#include "cuda/cuda_hooks.def"
    case CudaEntry::kCount: break;
  }
  return 0;
}

}  // namespace forksight
