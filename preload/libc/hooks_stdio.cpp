// The hooks of functions that write or discard the bytes of a stream. If no stream had unwritten bytes at a fork, a
// hook costs a load and a branch.
#include <stdio.h>

#include "guest/site.hpp"
#include "libc/unflushed.hpp"
#include "loader/next.hpp"

using namespace forksight;

namespace {

template <class Call>
__attribute__((always_inline)) inline int watch_flush(FILE* stream, trace::FlushKind kind, Frame frame, Call real) {
  if (FORKSIGHT_LIKELY(g_unflushed_count == 0)) return real(stream);
  const FlushMarks marks = find_unflushed(stream);
  const int result = real(stream);
  if (result == 0) note_flushes(marks, kind, frame.site());
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, fflush, FILE* stream) {
  return watch_flush(stream, trace::FlushKind::kFlush, FORKSIGHT_FRAME(), FORKSIGHT_NEXT(fflush));
}

FORKSIGHT_EXPORT(int, fclose, FILE* stream) {
  return watch_flush(stream, trace::FlushKind::kClose, FORKSIGHT_FRAME(), FORKSIGHT_NEXT(fclose));
}

FORKSIGHT_EXPORT(void, __fpurge, FILE* stream) {
  if (FORKSIGHT_UNLIKELY(g_unflushed_count != 0)) note_purge(stream, FORKSIGHT_FRAME().site());
  reinterpret_cast<void (*)(FILE*)>(next_of(g_next.__fpurge))(stream);
}

#include "guest/house_rules.hpp"
