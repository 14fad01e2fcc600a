// Tests pack() and unpack(): they keep all fields of a model, and unpack() refuses bytes that are no model.
#include "guard/pack.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/filler.hpp"

namespace forksight::guard {
namespace {

// Fills a model with texts that contain a zero byte and a byte that is not valid UTF-8.
class Filler : public test::Filler {
 public:
  Filler() : test::Filler(std::string("\0\xff\n", 3)) {}
};

TEST(Pack, LosesNothing) {
  model::Model model;
  Filler filler;
  filler.fill(model);
  EXPECT_GT(filler.texts(), 100);
  const std::string bytes = pack(model);
  const auto copy = unpack(bytes);
  ASSERT_TRUE(copy);
  EXPECT_EQ(pack(*copy), bytes);
  EXPECT_EQ(copy->processes.front().cmdline, model.processes.front().cmdline);
  EXPECT_EQ(copy->forks.front().handlers.front().ns[2], model.forks.front().handlers.front().ns[2]);
  EXPECT_EQ(copy->limits, model.limits);
}

TEST(Pack, RefusesWhatIsCutOffOrTooLong) {
  model::Model model;
  Filler().fill(model);
  const std::string bytes = pack(model);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(unpack(std::string_view(bytes).substr(0, length))) << length;
  }
  EXPECT_FALSE(unpack(bytes + '\0'));
}

// Each byte is changed in three ways. unpack() must refuse the result, or return a model whose ids are valid.
TEST(Pack, NeverGivesAModelWithWrongIds) {
  model::Model model;
  Filler().fill(model);
  const std::string bytes = pack(model);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string hostile = bytes;
      hostile[at] = static_cast<char>(static_cast<unsigned char>(hostile[at] ^ change));
      const auto got = unpack(hostile);
      if (!got) {
        ++refused;
        continue;
      }
      ASSERT_TRUE(are_ids_valid(*got)) << at;
    }
  }
  EXPECT_GT(refused, bytes.size());
}

// A count of 2^60 items must not make the reader allocate memory for so many items.
TEST(Pack, DoesNotTrustACount) {
  std::string bytes(64, '\0');
  bytes[7] = 0x10;
  EXPECT_FALSE(unpack(bytes));
}

TEST(Pack, RefusesEachWrongId) {
  const auto is_refused = [](const auto& spoil) {
    model::Model model;
    Filler().fill(model);
    EXPECT_TRUE(are_ids_valid(model));
    spoil(model);
    return !unpack(pack(model));
  };
  EXPECT_TRUE(is_refused([](model::Model& model) { model.processes[0].waits_for = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.processes[0].python = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.threads[0].process = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.pools[0].workers[0] = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].process = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].child = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].forking_thread = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].lost_threads[0] = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].ended_in_prepare[0] = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].pools[0] = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].python = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].held[0].lock = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].held[0].holder = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].lost_waits[0].thread = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].calls[0].thread = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].streams[0].thread = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].handlers[0].handlers = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.forks[0].thread_pools[0].threads[0] = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.handler_runs[0].fork = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.handler_runs[0].waits[0].owner = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.touches[0].fork = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.touches[0].held = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.touches[0].in_flight = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.touches[0].pool = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.vfork_exits[0].process = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.unflushed[0].flushes[0].fork = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.shares[0].uses[0].process = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.draws[0].fork = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.cuda_ipc[0].process = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.file_lock_uses[0].fork = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.lives[0].creator = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.lock_orders[0].taken = 1; }));
  EXPECT_TRUE(is_refused([](model::Model& model) { model.racy_touches[0].lock = 1; }));
}

TEST(Pack, RefusesAnUnknownValueOfAnEnum) {
  model::Model model;
  model.processes.emplace_back().liveness = static_cast<model::Liveness>(99);
  EXPECT_FALSE(unpack(pack(model)));
}

}  // namespace
}  // namespace forksight::guard
