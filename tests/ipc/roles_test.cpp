// Tests the entries of members, their roles, and whether further producers or consumers are expected. The sources are
// compiled as for the model checker. So the test can let other members act before each access to a shared word.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "local_ring.hpp"
#include "members.hpp"
#include "role_status.hpp"

namespace forksight::ipc::detail {
namespace {

// The test sets g_steps_left to the number of an access to shared memory, counted from 0. g_between is called once,
// before that access.
std::function<void()> g_between;
long g_steps_left = -1;

}  // namespace

void model_step(const void* /*word*/) {
  if (g_steps_left < 0 || g_steps_left-- != 0) return;
  std::exchange(g_between, nullptr)();
}
void model_saw(std::uint64_t /*value*/) {}

namespace {

constexpr std::uint32_t kPlaces = 4;
constexpr std::uint64_t kMs = 1'000'000;

class Roles : public testing::Test {
 protected:
  Roles() : file_(memfd_create("forksight-queue-test", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, kPage) != 0) std::abort();
    view_.initialise();
    view_.lives = member_lock_view(file_);
  }
  ~Roles() override { close(file_); }

  void join(members& one, std::uint32_t roles) const {
    const auto joined = one.join(view_, roles, file_, "");
    ASSERT_TRUE(joined) << joined.error().text;
  }
  // Recovers this member, as other members do when they take it for dead.
  void recover(const members& one) const {
    recovered what;
    EXPECT_TRUE(recovery::recover(view_, one.index(), identity::of(one.entry().word.load()), 0, what));
  }
  role_word word_of(std::uint32_t index) const { return role_word::of(view_.participants[index].roles.load()); }

  test::local_ring<2, 2, kPlaces> memory_;
  int file_;
  ring view_ = memory_.view(false);
  geometry shape_{};
  role_tracker role_tracker_;

  role_status look(members& who, std::uint64_t now_ns) {
    return role_tracker_.of(kProducerRole, who, view_, shape_, now_ns);
  }
};

TEST_F(Roles, TheWordOfAnEntryKeepsEachOfItsParts) {
  role_word word;
  word.roles = kProducerRole | kCaretakerRole;
  word.incarnation = 0xa5;
  word.closed[0] = 1;
  word.closed[1] = role_word::kMostEnded;
  word.died[0] = 0x1234;
  word.died[1] = 0x0fed;
  const role_word same = role_word::of(word.bits());
  EXPECT_EQ(same.roles, word.roles);
  EXPECT_EQ(same.incarnation, word.incarnation);
  for (std::size_t i = 0; i < kCountedRoles; ++i) {
    EXPECT_EQ(same.closed[i], word.closed[i]);
    EXPECT_EQ(same.died[i], word.died[i]);
  }
  // A counter at its maximum keeps its value, and does not overflow into the next part.
  word.roles = kConsumerRole;
  EXPECT_EQ(word.without(kConsumerRole, false).closed[1], role_word::kMostEnded);
  EXPECT_EQ(word.without(kConsumerRole, false).died[1], word.died[1]);
}

// In each round, a second producer joins before one access of has() to shared memory, and then the first producer ends.
// Each round chooses the next access. There is a producer all the time, so has() must return true.
TEST_F(Roles, HasFindsAProducerWhileOneReplacesAnother) {
  bool is_over = false;
  for (long step = 0; !is_over; ++step) {
    ASSERT_LT(step, 1000);
    members looks, older, younger;
    join(younger, 0);
    join(looks, 0);
    join(older, kProducerRole);
    ASSERT_LT(younger.index(), older.index());
    bool has_acted = false;
    g_between = [&] {
      has_acted = true;
      younger.take_role(kProducerRole);
      older.drop_role(kProducerRole);
    };
    g_steps_left = step;
    EXPECT_TRUE(looks.has(kProducerRole)) << "another producer joined before access " << step;
    g_steps_left = -1;
    is_over = !has_acted;
    for (members* one : {&younger, &looks, &older}) one->leave();
  }
}

TEST_F(Roles, EachEndIsCountedOnce) {
  members first, second;
  join(first, kProducerRole);
  join(second, 0);
  second.take_role(kProducerRole);
  second.take_role(kConsumerRole);
  first.drop_role(kProducerRole);
  first.drop_role(kProducerRole);
  first.leave();
  EXPECT_EQ(count_ended(view_, kProducerRole).closed, 1u);
  recover(second);
  second.drop_role(kProducerRole);
  second.leave();
  EXPECT_EQ(count_ended(view_, kProducerRole).closed, 1u);
  EXPECT_EQ(count_ended(view_, kProducerRole).died, 1u);
  EXPECT_EQ(count_ended(view_, kConsumerRole).died, 1u);
  EXPECT_EQ(count_ended(view_, kConsumerRole).closed, 0u);
}

// In each round, another survivor makes the whole recovery before one access of a slow recovery to shared memory, and a
// new member takes the entry. Each round chooses the next access.
TEST_F(Roles, ASlowRecoveryCountsNoDeathTwiceAndEndsNoNewMember) {
  bool is_over = false;
  for (long step = 0; !is_over; ++step) {
    ASSERT_LT(step, 1000);
    members keeps, dies, comes;
    join(keeps, 0);
    join(dies, kProducerRole);
    const ended_members before = count_ended(view_, kProducerRole);
    const identity dead = identity::of(dies.entry().word.load());
    bool has_acted = false;
    // leave() frees the lock of the dead member, so that another member can take its entry.
    g_between = [&] {
      has_acted = true;
      recovered other;
      EXPECT_TRUE(recovery::recover(view_, dies.index(), dead, 0, other));
      dies.leave();
      join(comes, kProducerRole);
      ASSERT_EQ(comes.index(), 1u);
    };
    g_steps_left = step;
    recovered what;
    (void)recovery::recover(view_, 1, dead, 0, what);
    g_steps_left = -1;
    EXPECT_EQ(count_ended(view_, kProducerRole).died, before.died + 1) << "before access " << step;
    EXPECT_EQ(count_ended(view_, kProducerRole).closed, before.closed);
    if (has_acted) {
      EXPECT_TRUE(word_of(1).has(kProducerRole)) << "before access " << step;
      EXPECT_FALSE(comes.is_evicted());
    }
    is_over = !has_acted;
    for (members* one : {&keeps, &dies, &comes}) one->leave();
  }
}

TEST_F(Roles, WithoutAnExpectedNumberTheLastProducerEndsTheQueue) {
  members creator, producer;
  join(creator, 0);
  EXPECT_EQ(look(creator, 0).what, role_status::kind::open) << "no producer has joined yet";
  join(producer, kProducerRole);
  EXPECT_EQ(look(creator, 0).what, role_status::kind::open);
  producer.leave();
  EXPECT_EQ(look(creator, 0).what, role_status::kind::ended);
  creator.leave();
}

TEST_F(Roles, AProducerThatJoinsAtTheEndOfTheGraceTimeKeepsTheQueueOpen) {
  shape_.grace_ms = 10;
  members creator, producer, another;
  join(creator, 0);
  join(producer, kProducerRole);
  producer.leave();
  const role_status first = look(creator, 100 * kMs);
  EXPECT_EQ(first.what, role_status::kind::open);
  EXPECT_EQ(first.look_again_ns, 110 * kMs);
  EXPECT_EQ(look(creator, 110 * kMs - 1).what, role_status::kind::open);
  join(another, kProducerRole);
  EXPECT_EQ(look(creator, 200 * kMs).what, role_status::kind::open);
  // When this producer ends, a new grace time begins.
  another.leave();
  EXPECT_EQ(look(creator, 300 * kMs).look_again_ns, 310 * kMs);
  EXPECT_EQ(look(creator, 310 * kMs - 1).what, role_status::kind::open);
  EXPECT_EQ(look(creator, 310 * kMs).what, role_status::kind::ended);
  creator.leave();
}

TEST_F(Roles, AProducerThatJoinsAndEndsBetweenTwoLooksRestartsTheGraceTime) {
  shape_.grace_ms = 10;
  members creator, producer, another;
  join(creator, 0);
  join(producer, kProducerRole);
  producer.leave();
  EXPECT_EQ(look(creator, 100 * kMs).look_again_ns, 110 * kMs);
  join(another, kProducerRole);
  another.leave();
  EXPECT_EQ(look(creator, 110 * kMs).look_again_ns, 120 * kMs);
  EXPECT_EQ(look(creator, 120 * kMs).what, role_status::kind::ended);
  creator.leave();
}

TEST_F(Roles, TheQueueEndsAfterTheExpectedNumberOfEnds) {
  shape_.expected_producers = 2;
  members creator, first, second;
  join(creator, 0);
  join(first, kProducerRole);
  first.leave();
  EXPECT_EQ(look(creator, 0).what, role_status::kind::open);
  join(second, kProducerRole);
  EXPECT_EQ(look(creator, 0).what, role_status::kind::open);
  recover(second);
  const role_status seen = look(creator, 0);
  EXPECT_EQ(seen.what, role_status::kind::ended);
  EXPECT_EQ(seen.ended.closed, 1u);
  EXPECT_EQ(seen.ended.died, 1u);
  second.leave();
  creator.leave();
}

TEST_F(Roles, NoGraceTimeIfAllExpectedProducersHaveClosed) {
  shape_.expected_producers = 1;
  shape_.grace_ms = 10;
  members creator, producer;
  join(creator, 0);
  join(producer, kProducerRole);
  producer.leave();
  EXPECT_EQ(look(creator, 0).what, role_status::kind::ended);
  creator.leave();
}

TEST_F(Roles, AGraceTimeBeginsIfAnExpectedProducerDied) {
  shape_.expected_producers = 1;
  shape_.grace_ms = 10;
  members creator, producer;
  join(creator, 0);
  join(producer, kProducerRole);
  recover(producer);
  EXPECT_EQ(look(creator, 5 * kMs).look_again_ns, 15 * kMs);
  EXPECT_EQ(look(creator, 15 * kMs).what, role_status::kind::ended);
  producer.leave();
  creator.leave();
}

// The creator was to start the expected producers. After its death, nobody starts them.
TEST_F(Roles, TheDeathOfTheCreatorEndsTheWaitForExpectedProducers) {
  shape_.expected_producers = 2;
  shape_.grace_ms = 10;
  members creator, consumer, late;
  join(creator, kCaretakerRole);
  join(consumer, kConsumerRole);
  EXPECT_EQ(look(consumer, 0).what, role_status::kind::open);
  recover(creator);
  EXPECT_EQ(look(consumer, 100 * kMs).look_again_ns, 110 * kMs);
  EXPECT_EQ(look(consumer, 110 * kMs).what, role_status::kind::creator_died);
  // A producer that the creator had started joins late. While it is a member, the queue is open.
  join(late, kProducerRole);
  EXPECT_EQ(look(consumer, 111 * kMs).what, role_status::kind::open);
  for (members* one : {&creator, &consumer, &late}) one->leave();
}

TEST_F(Roles, ACreatorThatClosesEndsNothing) {
  shape_.expected_producers = 2;
  members creator, consumer;
  join(creator, kCaretakerRole);
  join(consumer, kConsumerRole);
  creator.leave();
  EXPECT_EQ(look(consumer, 0).what, role_status::kind::open);
  consumer.leave();
}

TEST_F(Roles, ACreatorThatDiesAsAProducerCountsAsOneExpectedProducer) {
  shape_.expected_producers = 2;
  members creator, consumer;
  join(creator, kProducerRole);
  join(consumer, kConsumerRole);
  recover(creator);
  EXPECT_EQ(look(consumer, 0).what, role_status::kind::open);
  creator.leave();
  consumer.leave();
}

// A later owner of the creator's entry is not the creator, even if the incarnation number has the creator's value
// again.
TEST_F(Roles, ALaterOwnerOfTheCreatorsEntryIsNotTheCreator) {
  shape_.expected_producers = 1;
  members creator, consumer;
  join(creator, 0);
  join(consumer, kConsumerRole);
  ASSERT_EQ(consumer.index(), 1u);
  creator.leave();
  for (int i = 0; i < 255; ++i) {
    members other;
    join(other, 0);
    ASSERT_EQ(other.index(), 0u);
    other.leave();
  }
  members last;
  join(last, 0);
  ASSERT_EQ(last.me().incarnation(), 0);
  recover(last);
  last.leave();
  EXPECT_EQ(look(consumer, 0).what, role_status::kind::open);
  consumer.leave();
}

}  // namespace
}  // namespace forksight::ipc::detail
