// The wrappers of MPI and UCX. Except in the forked child of a process that had initialised the library, most wrappers
// are a few loads, a branch and a call. Arguments are passed on as words, unchanged. If a function takes fewer words
// than its wrapper, the other words are whatever the registers contained (x86-64 psABI 3.2.3: integers and pointers
// only).
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "mpi/mpi.hpp"
#include "record/function_touch.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using Word = std::uint64_t;

// The result of a call if the library of the real function was closed before the call.
constexpr Word kMpiError = 16;                      // MPI_ERR_OTHER in Open MPI; an error in every other MPI, too
constexpr auto kUcxError = static_cast<Word>(-22);  // UCS_ERR_UNSUPPORTED

constexpr bool is_ucx(MpiEntry entry) { return entry >= MpiEntry::ucp_init_version; }

// The error in the result of a call; 0: there is none, or the call shows none yet.
int status_of(MpiEntry entry, Word result) {
  switch (entry) {
    case MpiEntry::ucp_cleanup:
    case MpiEntry::ucp_worker_progress: return 0;
    case MpiEntry::ucp_tag_send_nbx:
    case MpiEntry::ucp_tag_recv_nbx: {
      // The result is a pointer to a request, or a status in the form of a pointer.
      constexpr std::int64_t kLastStatus = -100;
      const auto status = static_cast<std::int64_t>(result);
      return status < 0 && status >= kLastStatus ? static_cast<int>(status) : 0;
    }
    default: return static_cast<int>(result);
  }
}

// Handles the calls that are not the common case. These are the first call in a process, the calls of a watched child,
// calls of functions that are examined in every process, and calls of a wrapper whose real function is gone.
template <class... Words>
__attribute__((noinline, cold)) Word call_slow(MpiEntry entry, std::uint32_t wrapper, Frame frame, Words... words) {
  initialise();
  const std::uint64_t function = g_mpi_reals[static_cast<std::uint32_t>(entry)][wrapper].address;
  if (function == 0) return is_ucx(entry) ? kUcxError : kMpiError;
  note_mpi_use(entry, function);
  const std::uint64_t touch = g_watch_mpi ? touch_mpi(entry, function, frame.site()) : 0;
  const Word result = reinterpret_cast<Word (*)(Words...)>(function)(words...);
  end_function_touch(touch, status_of(entry, result));
  if (entry == MpiEntry::ucp_init_version && static_cast<int>(result) == 0) note_ucx(1);
  if (entry == MpiEntry::ucp_cleanup) note_ucx(-1);
  return result;
}

constexpr bool is_always_examined(MpiEntry entry) {
  return entry == MpiEntry::ucp_init_version || entry == MpiEntry::ucp_cleanup;
}

template <MpiEntry entry, std::uint32_t wrapper, class... Words>
__attribute__((always_inline)) inline Word call(Frame frame, Words... words) {
  const std::uint64_t function =
      g_mpi_reals[static_cast<std::uint32_t>(entry)][wrapper].address.load(std::memory_order_acquire);
  const bool is_used = g_mpi_is_used.load(std::memory_order_relaxed);
  if (is_always_examined(entry) || FORKSIGHT_UNLIKELY(!is_used || function == 0 || g_watch_mpi)) {
    return call_slow(entry, wrapper, frame, words...);
  }
  return reinterpret_cast<Word (*)(Words...)>(function)(words...);
}

}  // namespace

}  // namespace forksight

using namespace forksight;

#define FORKSIGHT_WORDS_6 Word a, Word b, Word c, Word d, Word e, Word f
#define FORKSIGHT_WORDS_7 FORKSIGHT_WORDS_6, Word g
#define FORKSIGHT_WORDS_8 FORKSIGHT_WORDS_7, Word h
#define FORKSIGHT_WORDS_12 FORKSIGHT_WORDS_8, Word i, Word j, Word k, Word l
#define FORKSIGHT_PASS_6 a, b, c, d, e, f
#define FORKSIGHT_PASS_7 FORKSIGHT_PASS_6, g
#define FORKSIGHT_PASS_8 FORKSIGHT_PASS_7, h
#define FORKSIGHT_PASS_12 FORKSIGHT_PASS_8, i, j, k, l

#define FORKSIGHT_MPI_HOOK(name, words)                                              \
  template <std::uint32_t wrapper>                                                   \
  static Word handed_out_##name(FORKSIGHT_WORDS_##words) {                           \
    return call<MpiEntry::name, wrapper>(FORKSIGHT_FRAME(), FORKSIGHT_PASS_##words); \
  }
#include "mpi/mpi_hooks.def"

namespace forksight {

// This is a switch and not a table of pointers, because the loader would have to relocate the pointers at every start
// of every program.
std::uint64_t mpi_wrapper(MpiEntry entry, std::uint32_t wrapper) {
  switch (entry) {
#define FORKSIGHT_MPI_HOOK(name, words)                                            \
  case MpiEntry::name:                                                             \
    return wrapper == 0   ? reinterpret_cast<std::uint64_t>(&handed_out_##name<0>) \
           : wrapper == 1 ? reinterpret_cast<std::uint64_t>(&handed_out_##name<1>) \
           : wrapper == 2 ? reinterpret_cast<std::uint64_t>(&handed_out_##name<2>) \
                          : reinterpret_cast<std::uint64_t>(&handed_out_##name<3>);
#include "mpi/mpi_hooks.def"
    case MpiEntry::kCount: break;
  }
  return 0;
}

}  // namespace forksight
