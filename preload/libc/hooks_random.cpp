// drand48() and similar functions, which share one state and have no lock. random() and rand(), which have a lock, are
// in hooks_libc.cpp.
#include <stdlib.h>

#include "guest/site.hpp"
#include "libc/random_numbers.hpp"
#include "loader/lazy_next.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;
using trace::Generator;

namespace {

constexpr double kHighBits = 2147483648.0;  // 2^31: a result of drand48() times this has the 31 bits of lrand48()

}  // namespace

FORKSIGHT_EXPORT(double, drand48, ) {
  const double value = FORKSIGHT_LAZY_NEXT(drand48)();
  note_random_number(Generator::kDrand48, static_cast<std::uint64_t>(value * kHighBits), FORKSIGHT_FRAME());
  return value;
}

FORKSIGHT_EXPORT(long, lrand48, ) {
  const long value = FORKSIGHT_LAZY_NEXT(lrand48)();
  note_random_number(Generator::kDrand48, static_cast<std::uint64_t>(value), FORKSIGHT_FRAME());
  return value;
}

FORKSIGHT_EXPORT(long, mrand48, ) {
  const long value = FORKSIGHT_LAZY_NEXT(mrand48)();
  note_random_number(Generator::kDrand48, static_cast<std::uint32_t>(value) >> 1U, FORKSIGHT_FRAME());
  return value;
}

FORKSIGHT_EXPORT(void, srand48, long seed) {
  note_seed(Generator::kDrand48);
  FORKSIGHT_LAZY_NEXT(srand48)(seed);
}

FORKSIGHT_EXPORT(unsigned short*, seed48, unsigned short* seed) {
  note_seed(Generator::kDrand48);
  return FORKSIGHT_LAZY_NEXT(seed48)(seed);
}

FORKSIGHT_EXPORT(void, lcong48, unsigned short* parameters) {
  note_seed(Generator::kDrand48);
  FORKSIGHT_LAZY_NEXT(lcong48)(parameters);
}
