#include "session/preload.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace forksight {
namespace {

namespace fs = std::filesystem;

class PreloadLimits : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-launch-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  static std::string elf(unsigned char bits, unsigned short machine, std::uint32_t segment) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = bits;
    header.e_machine = machine;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr program{};
    program.p_type = segment;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes.append(reinterpret_cast<const char*>(&program), sizeof program);
  }

  fs::path folder_;
};

TEST_F(PreloadLimits, NoneForAnOrdinaryProgram) {
  EXPECT_TRUE(find_preload_limits("/bin/sh").empty());
  EXPECT_TRUE(find_preload_limits(write("good", elf(ELFCLASS64, EM_X86_64, PT_INTERP))).empty());
}

TEST_F(PreloadLimits, AProgramOfAnotherArchitectureIsReported) {
  for (const auto& [bits, machine] : {std::pair{ELFCLASS32, EM_386}, {ELFCLASS32, EM_X86_64}, {ELFCLASS64, EM_AARCH64}}) {
    const auto limits = find_preload_limits(write("foreign", elf(static_cast<unsigned char>(bits), static_cast<unsigned short>(machine), PT_INTERP)));
    ASSERT_EQ(limits.size(), 1U);
    EXPECT_NE(limits[0].find("not an x86-64 program"), std::string::npos);
  }
}

TEST_F(PreloadLimits, AStaticProgramIsReported) {
  const auto limits = find_preload_limits(write("static", elf(ELFCLASS64, EM_X86_64, PT_LOAD)));
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_NE(limits[0].find("statically linked"), std::string::npos);
}

TEST_F(PreloadLimits, AProgramOfMuslWouldNotStart) {
  const auto with_loader = [&](const std::string& name, const std::string& loader) {
    std::string bytes = elf(ELFCLASS64, EM_X86_64, PT_INTERP);
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + sizeof(Elf64_Ehdr), sizeof segment);
    segment.p_offset = bytes.size();
    segment.p_filesz = loader.size() + 1;
    std::memcpy(bytes.data() + sizeof(Elf64_Ehdr), &segment, sizeof segment);
    return write(name, bytes + loader + '\0');
  };
  const fs::path musl = with_loader("musl", "/lib/ld-musl-x86_64.so.1");
  const auto said = find_other_libc(musl);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find(musl.string() + " runs on musl"), std::string::npos) << *said;
  EXPECT_TRUE(find_other_libc(write("script", "#!" + musl.string() + "\n")));
  EXPECT_FALSE(find_other_libc(with_loader("glibc", "/lib64/ld-linux-x86-64.so.2")));
  EXPECT_FALSE(find_other_libc("/bin/sh"));
  EXPECT_FALSE(find_other_libc(write("static", elf(ELFCLASS64, EM_X86_64, PT_LOAD)))) << "a static program ignores LD_PRELOAD";
  const std::string whole = elf(ELFCLASS64, EM_X86_64, PT_INTERP);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(find_other_libc(write("cut", whole.substr(0, length))));
  }
}

TEST_F(PreloadLimits, AScriptIsJudgedByItsInterpreter) {
  const fs::path foreign = write("foreign", elf(ELFCLASS32, EM_386, PT_INTERP));
  const auto limits = find_preload_limits(write("script", "#! " + foreign.string() + " -x\necho\n"));
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_NE(limits[0].find(foreign.string()), std::string::npos);
  EXPECT_TRUE(find_preload_limits(write("shell", "#!/bin/sh\n")).empty());
  EXPECT_TRUE(find_preload_limits(write("loop", "#!" + (folder_ / "loop").string() + "\n")).empty());
}

TEST_F(PreloadLimits, OddFilesHaveNoLimits) {
  EXPECT_TRUE(find_preload_limits(folder_ / "absent").empty());
  EXPECT_TRUE(find_preload_limits(folder_).empty());
  const std::string whole = elf(ELFCLASS64, EM_X86_64, PT_INTERP);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(find_preload_limits(write("cut", whole.substr(0, length))).empty()) << length;
  }
}

TEST(PreloadValue, KeepsEarlierPreloads) {
  EXPECT_EQ(preload_value("/a/lib.so", nullptr), "/a/lib.so");
  EXPECT_EQ(preload_value("/a/lib.so", ""), "/a/lib.so");
  EXPECT_EQ(preload_value("/a/lib.so", "/b.so /c.so"), "/a/lib.so:/b.so /c.so");
}

TEST(AsanOptions, TheOrderCheckIsOffUnlessTheUserAsksForIt) {
  EXPECT_EQ(asan_options_value(nullptr), "verify_asan_link_order=0");
  EXPECT_EQ(asan_options_value(""), "verify_asan_link_order=0");
  EXPECT_EQ(asan_options_value("detect_leaks=0"), "verify_asan_link_order=0:detect_leaks=0");
  EXPECT_FALSE(find_asan_limit(nullptr));
  EXPECT_FALSE(find_asan_limit("detect_leaks=1"));
  EXPECT_FALSE(find_asan_limit("verify_asan_link_order=1:verify_asan_link_order=0"));
  const auto limit = find_asan_limit("verify_asan_link_order=1:detect_leaks=0");
  ASSERT_TRUE(limit);
  EXPECT_NE(limit->find("ASAN_OPTIONS has verify_asan_link_order=1: "), std::string::npos) << *limit;
}

}  // namespace
}  // namespace forksight
