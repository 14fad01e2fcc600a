// Tests the state machine of the ring with hints that are too low or wrong, and with a survivor that recovers too late.
#include "ring.hpp"

#include <gtest/gtest.h>

#include "local_ring.hpp"
#include "recovery.hpp"

namespace forksight::ipc::detail {
namespace {

using small_ring = test::local_ring<4, 4, 3>;
constexpr owner_id kFirst(0, 0);
constexpr owner_id kSecond(1, 0);

step_result pass_one(const ring& of) {
  claimed buffer;
  if (const step_result got = test::claim(of, kFirst, buffer); got != step_result::done) return got;
  if (const step_result sent = of.publish(kFirst, 100, buffer, 1, 0); sent != step_result::done) return sent;
  taken message;
  if (const step_result got = test::take(of, kSecond, message); got != step_result::done) return got;
  return of.release(kSecond, message, 0);
}

// A member may be stopped after it has read a hint and before it stores a new value. Its store then sets the hint back
// by all positions that others passed meanwhile.
TEST(Ring, MessagesPassAlthoughAHintIsFarBehind) {
  for (const bool redelivers : {false, true}) {
    small_ring memory;
    const ring of = memory.begin(redelivers);
    for (int i = 0; i < 100'000; ++i) ASSERT_EQ(pass_one(of), step_result::done);
    memory.head.tail.store_relaxed(7);
    memory.head.head.store_relaxed(5);
    EXPECT_EQ(pass_one(of), step_result::done);
    memory.head.tail.store_relaxed(1);
    EXPECT_EQ(pass_one(of), step_result::done);
  }
}

TEST(Ring, AHintThatIsFarBehindHidesNoMessage) {
  for (const std::uint32_t late : {0u, 90'001u, 99'998u}) {
    small_ring memory;
    const ring of = memory.begin(false);
    for (int i = 0; i < 100'000; ++i) ASSERT_EQ(pass_one(of), step_result::done);
    claimed buffer;
    ASSERT_EQ(test::claim(of, kFirst, buffer), step_result::done);
    ASSERT_EQ(of.publish(kFirst, 100, buffer, 1, 0), step_result::done);
    memory.head.head.store_relaxed(late);
    EXPECT_FALSE(of.is_drained(kSecond));
    taken message;
    EXPECT_EQ(test::take(of, kSecond, message), step_result::done) << late;
    EXPECT_TRUE(of.is_drained(kSecond));
  }
}

// A hint may be overwritten with a wrong value. The ring then computes the correct value from the words of the slots.
// The ring cannot recognise a wrong value that names another free slot, so the test uses no such value.
TEST(Ring, AHintThatIsAheadOfAllSlotsIsCorrected) {
  for (const std::uint32_t wrong : {14u, 16u, 20u, 1'000u, 0x7000'0000u, 0xffff'fff0u}) {
    for (const bool of_tail : {true, false}) {
      small_ring memory;
      const ring of = memory.begin(false);
      for (int i = 0; i < 10; ++i) ASSERT_EQ(pass_one(of), step_result::done);
      (of_tail ? memory.head.tail : memory.head.head).store_relaxed(wrong);
      for (int i = 0; i < 20; ++i) ASSERT_EQ(pass_one(of), step_result::done) << wrong << (of_tail ? " tail" : " head");
    }
  }
}

// A survivor is stopped during a recovery. Meanwhile the dead member's entry gets so many new owners that the
// incarnation number has its old value again. The pid tells the survivor that the owner is another one.
TEST(Ring, ALateSurvivorTakesNothingFromTheNextOwner) {
  for (const bool redelivers : {false, true}) {
    small_ring memory;
    const ring of = memory.begin(redelivers);
    identity before = small_ring::identity_of(0);
    before.pid = 99;
    claimed lent, sent;
    ASSERT_EQ(test::claim(of, kFirst, sent), step_result::done);
    ASSERT_EQ(of.publish(kFirst, 100, sent, 1, 0), step_result::done);
    taken message;
    ASSERT_EQ(test::take(of, kFirst, message), step_result::done);
    ASSERT_EQ(test::claim(of, kFirst, lent), step_result::done);
    recovered what;
    EXPECT_FALSE(recovery::recover(of, 0, before, 0, what));
    EXPECT_EQ(what.buffers + what.requeued + what.lost, 0u);
    EXPECT_EQ(of.give_back(kFirst, lent, 0), step_result::done);
    EXPECT_EQ(of.release(kFirst, message, 0), step_result::done);
  }
}

}  // namespace
}  // namespace forksight::ipc::detail
