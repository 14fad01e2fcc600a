// Tests damaged cores. The damage is random, but the same in each run. Whatever a core contains, the code that opens it
// and unwinds its stacks must end, with an error or with fewer frames.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

#include "hang_process.hpp"
#include "image/core.hpp"
#include "image/live.hpp"
#include "image/stacks.hpp"
#include "support/core_writer.hpp"
#include "support/rounds.hpp"

namespace forksight::image {
namespace {

const int kRounds = test::rounds_of_fuzzing(6'000);

// A core file that a test damages in place and then restores.
class DamagedCoreFile {
 public:
  explicit DamagedCoreFile(std::vector<std::byte> bytes)
      : bytes_(std::move(bytes)), fd_(memfd_create("core", MFD_CLOEXEC)) {
    restore();
  }
  ~DamagedCoreFile() { close(fd_); }
  DamagedCoreFile(const DamagedCoreFile&) = delete;
  DamagedCoreFile& operator=(const DamagedCoreFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  std::size_t size() const { return bytes_.size(); }
  void put(std::size_t offset, const void* value, std::size_t size) {
    EXPECT_EQ(pwrite(fd_, value, size, static_cast<off_t>(offset)), static_cast<ssize_t>(size));
  }
  void cut(std::size_t size) { EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void restore() { put(0, bytes_.data(), bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
  int fd_;
};

std::size_t walk(const std::string& path) {
  const auto image = open_core(path);
  if (!image) {
    EXPECT_FALSE(image.error().empty());
    return 0;
  }
  Stacks stacks(image.value());
  std::size_t frames = 0;
  for (const Thread& thread : image->threads) frames += stacks.of(thread).frames.size();
  return frames;
}

std::vector<std::byte> make_sound_core() {
  const test::HangProcess process(std::string(IMAGE_FIXTURES) + "/image_hang_O0");
  const auto live = open_live(process.pid());
  if (!live) throw std::runtime_error(live.error());
  return test::make_core(live.value());
}

TEST(CoreMutation, SurvivesDamage) {
  DamagedCoreFile core(make_sound_core());
  const std::size_t whole = walk(core.path());
  ASSERT_GT(whole, 20U);
  std::mt19937_64 random(20240229);
  // Three quarters of the changes hit headers and notes, because most errors can happen there.
  const std::size_t head = std::min<std::size_t>(core.size(), 12U << 10U);
  const std::uint64_t words[] = {0,
                                 1,
                                 0xff,
                                 0xffff,
                                 0x7fff'ffff,
                                 0xffff'ffff,
                                 std::uint64_t{1} << 47U,
                                 ~std::uint64_t{0},
                                 ~std::uint64_t{0} - 4095,
                                 std::uint64_t{1} << 63U};
  for (int round = 0; round < kRounds; ++round) {
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const std::size_t range = random() % 4 == 0 ? core.size() : head;
      const std::size_t size = std::size_t{1} << (random() % 4);
      const std::size_t offset = random() % (range - size) / size * size;
      const std::uint64_t value = random() % 2 == 0 ? random() : words[random() % std::size(words)];
      core.put(offset, &value, size);
    }
    walk(core.path());
    core.restore();
  }
  EXPECT_EQ(walk(core.path()), whole);
}

TEST(CoreMutation, SurvivesEveryCut) {
  DamagedCoreFile core(make_sound_core());
  for (std::size_t size = core.size(); size > 0;
       size = size > 16384 ? size * 3 / 4 : size - std::min<std::size_t>(size, 97)) {
    core.cut(size);
    walk(core.path());
  }
}

}  // namespace
}  // namespace forksight::image
