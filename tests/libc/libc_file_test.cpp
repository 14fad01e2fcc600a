// Tests that the analyzer finds the version of a glibc, and the layout of its condition variables, in the machine code
// of the glibc's file.
#include "libc/libc_file.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "forksight/abi/condition.hpp"
#include "support/this_libc.hpp"

namespace forksight::libc {
namespace {

std::string path_of(std::string_view ending) {
  struct Search {
    std::string_view ending;
    std::string path;
  } search{ending, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& to = *static_cast<Search*>(data);
        if (std::string_view(info->dlpi_name).ends_with(to.ending)) to.path = info->dlpi_name;
        return 0;
      },
      &search);
  return search.path;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* const data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

TEST(LibcFile, GivesTheVersionAndLayoutOfThisLibc) {
  const abi::Libc asked = test::this_libc();
  const abi::Libc read = read_libc_file(path_of("/libc.so.6"));
  EXPECT_TRUE(read.version == asked.version) << int{read.version.minor};
  EXPECT_EQ(read.condition, asked.condition);
}

TEST(LibcFile, GivesNothingForOtherFiles) {
  for (const std::string& path : {path_of("/libstdc++.so.6"), std::string("/dev/null"), std::string("/none"),
                                  std::string("/proc/self/maps"), std::string("/tmp")}) {
    const abi::Libc read = read_libc_file(path);
    EXPECT_FALSE(read.version.is_known()) << path;
    EXPECT_EQ(read.condition, abi::ConditionKind::kUnknown) << path;
  }
}

TEST(LibcFile, IsKnownByName) {
  EXPECT_TRUE(is_libc_name("/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(is_libc_name("/lib64/libc-2.31.so"));
  EXPECT_FALSE(is_libc_name("/lib/ld-musl-x86_64.so.1"));
  EXPECT_FALSE(is_libc_name("/usr/lib/libcap.so.2"));
}

// pthread_cond_signal() first loads the word wrefs of the condition variable. The test looks for each instruction of
// the file that loads from the offset of wrefs, and replaces the offset in the instruction. The new offset is first
// that of wrefs in the other layout, then 12, where no layout has wrefs.
TEST(LibcFile, ShowsTheLayoutByItsCode) {
  std::vector<std::byte> bytes = bytes_of(path_of("/libc.so.6"));
  const abi::ConditionKind here = read_libc(bytes).condition;
  ASSERT_NE(here, abi::ConditionKind::kUnknown);
  const bool has_references = here == abi::ConditionKind::kWithReferences;
  const auto own =
      std::byte(has_references ? abi::kConditionWithReferences.wrefs : abi::kConditionWithoutReferences.wrefs);
  const auto other = has_references ? abi::ConditionKind::kWithoutReferences : abi::ConditionKind::kWithReferences;
  const auto change_to = [&](std::uint8_t offset) {
    std::vector<std::byte> changed = bytes;
    for (std::size_t i = 0; i + 3 < changed.size(); ++i) {
      const bool is_load = changed[i] == std::byte{0x8b} && (changed[i + 1] & std::byte{0xc7}) == std::byte{0x47};
      if (is_load && changed[i + 2] == own) changed[i + 2] = std::byte{offset};
    }
    return read_libc(changed).condition;
  };
  EXPECT_EQ(change_to(abi::layout_of(other)->wrefs), other);
  EXPECT_EQ(change_to(12), abi::ConditionKind::kUnknown);
}

// A copy of bytes between two inaccessible pages. The copy begins directly after the first of these pages, or ends
// directly before the second.
class GuardedBytes {
 public:
  enum class At { kBeginning, kEnd };
  GuardedBytes(std::span<const std::byte> bytes, At where) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes.size() + page - 1) / page * page;
    size_ = inside + 2 * page;
    void* const mapped = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<std::byte*>(mapped);
    std::byte* const begin = all_ + page + (where == At::kEnd ? inside - bytes.size() : 0);
    if (inside > 0 && ::mprotect(all_ + page, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), begin);
    // This makes the copy read-only.
    if (inside > 0 && ::mprotect(all_ + page, inside, PROT_READ) != 0) throw std::bad_alloc();
    bytes_ = {begin, bytes.size()};
  }
  ~GuardedBytes() { ::munmap(all_, size_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  std::span<const std::byte> get() const { return bytes_; }

 private:
  std::byte* all_ = nullptr;
  std::size_t size_ = 0;
  std::span<const std::byte> bytes_;
};

// Checks that read_libc() reads only the given bytes, and that its result depends only on them. The version in the
// result must have the major number 2, or must be unknown.
void expect_sound_answer(std::span<const std::byte> bytes) {
  const GuardedBytes early(bytes, GuardedBytes::At::kBeginning);
  const GuardedBytes late(bytes, GuardedBytes::At::kEnd);
  const abi::Libc read = read_libc(early.get());
  const abi::Libc again = read_libc(late.get());
  EXPECT_EQ(read.version, again.version);
  EXPECT_EQ(read.condition, again.condition);
  EXPECT_TRUE(!read.version.is_known() || read.version.major == 2) << int{read.version.major};
}

TEST(LibcFile, IsReadSafelyIfItIsDamaged) {
  const std::vector<std::byte> good = bytes_of(path_of("/libc.so.6"));
  const abi::Libc whole = read_libc(good);
  ASSERT_TRUE(whole.version.is_known());
  std::mt19937 random(20'261'122);
  int differing = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::byte> bytes = good;
    for (int change = 0; change < 64; ++change) {
      // Most changes hit the header of the file, at its beginning, or the headers of the sections, at its end.
      const std::size_t where = random() % 3;
      const std::size_t at = where == 0   ? random() % 1024
                             : where == 1 ? bytes.size() - 1 - random() % 4096
                                          : random() % bytes.size();
      bytes[at] = static_cast<std::byte>(random());
    }
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    expect_sound_answer(bytes);
    const abi::Libc read = read_libc(bytes);
    if (read.version != whole.version || read.condition != whole.condition) ++differing;
  }
  EXPECT_GT(differing, 0) << "no change hit bytes that read_libc() reads";
}

// The program headers claim that a function is at the end of the file. So the file has only the first bytes of the
// function, or none.
TEST(LibcFile, EndsWithinAFunction) {
  const std::vector<std::byte> good = bytes_of(path_of("/libc.so.6"));
  for (const char* const name : {"gnu_get_libc_version", "pthread_cond_signal", "pthread_cond_broadcast"}) {
    Dl_info info{};
    ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, name), &info), 0) << name;
    const auto address =
        reinterpret_cast<std::uint64_t>(info.dli_saddr) - reinterpret_cast<std::uint64_t>(info.dli_fbase);
    Elf64_Ehdr head{};
    std::memcpy(&head, good.data(), sizeof head);
    int moved = 0;
    for (std::size_t i = 0; i < head.e_phnum; ++i) {
      const std::size_t at = head.e_phoff + i * sizeof(Elf64_Phdr);
      Elf64_Phdr segment{};
      std::memcpy(&segment, good.data() + at, sizeof segment);
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
        continue;
      ++moved;
      for (std::uint64_t left = 0; left < 80; ++left) {
        std::vector<std::byte> bytes = good;
        segment.p_offset = good.size() - left - (address - segment.p_vaddr);
        std::memcpy(bytes.data() + at, &segment, sizeof segment);
        expect_sound_answer(bytes);
      }
    }
    EXPECT_EQ(moved, 1) << name;
  }
}

// In these files some headers are missing, so nothing is known about them.
TEST(LibcFile, IsUnknownIfItIsCut) {
  const std::vector<std::byte> good = bytes_of(path_of("/libc.so.6"));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{63}, std::size_t{64}, good.size() / 2}) {
    const std::span<const std::byte> cut(good.data(), size);
    expect_sound_answer(cut);
    EXPECT_FALSE(read_libc(cut).version.is_known()) << size;
    EXPECT_EQ(read_libc(cut).condition, abi::ConditionKind::kUnknown) << size;
  }
}

}  // namespace
}  // namespace forksight::libc
