#include "image/core.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "hang_process.hpp"
#include "image/core_file.hpp"
#include "image/live.hpp"
#include "image/stacks.hpp"
#include "support/core_writer.hpp"

extern char** environ;

namespace forksight::image {
namespace {

using test::CoreScene;
using test::HangProcess;
using test::names_of;

const std::string kProgram = std::string(IMAGE_FIXTURES) + "/image_hang_O0";

class Core : public testing::Test {
 protected:
  Core() {
    std::string name = testing::TempDir() + "forksight_core_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~Core() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::vector<std::byte>& bytes) const {
    test::write_file(path("core"), bytes);
    return path("core");
  }
  std::string error_of(const std::vector<std::byte>& bytes, const std::string& exe = "") const {
    const auto image = open_core(write(bytes), {exe});
    return image ? "" : image.error();
  }

  std::filesystem::path folder_;
};

std::map<std::int32_t, std::string> stacks_of(const Image& image) {
  std::map<std::int32_t, std::string> result;
  Stacks stacks(image);
  for (const Thread& thread : image.threads) result[thread.tid] = names_of(stacks.of(thread));
  return result;
}

void expect_agreement(const Image& core, const Image& live) {
  EXPECT_TRUE(core.is_core);
  EXPECT_EQ(core.pid, live.pid);
  EXPECT_EQ(core.ppid, live.ppid);
  EXPECT_EQ(core.exe, live.exe);
  EXPECT_EQ(core.cmdline, live.cmdline);
  EXPECT_TRUE(core.limits.empty()) << core.limits.front();
  ASSERT_EQ(core.threads.size(), live.threads.size());
  for (std::size_t i = 0; i < core.threads.size(); ++i) {
    EXPECT_EQ(core.threads[i].tid, live.threads[i].tid);
    EXPECT_EQ(core.threads[i].state, live.threads[i].state);
    EXPECT_EQ(core.threads[i].fs_base, live.threads[i].fs_base);
    ASSERT_EQ(core.threads[i].call.has_value(), live.threads[i].call.has_value()) << i;
    if (!core.threads[i].call) continue;
    EXPECT_EQ(core.threads[i].call->number, live.threads[i].call->number);
    EXPECT_EQ(core.threads[i].call->args[0], live.threads[i].call->args[0]);
    EXPECT_EQ(core.threads[i].call->pc, live.threads[i].call->pc);
  }
  EXPECT_EQ(stacks_of(core), stacks_of(live));
  ASSERT_EQ(core.modules.size(), live.modules.size());
  for (std::size_t i = 0; i < core.modules.size(); ++i) {
    EXPECT_EQ(core.modules[i].path, live.modules[i].path);
    EXPECT_EQ(core.modules[i].bias, live.modules[i].bias);
    EXPECT_EQ(core.modules[i].end, live.modules[i].end);
    EXPECT_EQ(core.modules[i].build_id, live.modules[i].build_id);
  }
}

// Compares the mappings of a core with those of the process. A core need not list a mapping whose memory the core does
// not contain. A core may list the first page of a file as a separate mapping.
void expect_mappings(const Image& core, const Image& live) {
  for (const proc::Mapping& mapping : live.mappings) {
    if (!mapping.readable || mapping.path == "[vvar]" || mapping.path.starts_with("[vvar_")) continue;
    for (const std::uint64_t address : {mapping.end - 1, mapping.end - 4096}) {
      const proc::Mapping* const found = core.mapping_of(address);
      ASSERT_NE(found, nullptr) << mapping.path;
      EXPECT_EQ(found->writable, mapping.writable) << mapping.path;
      EXPECT_EQ(found->executable, mapping.executable) << mapping.path;
      if (!mapping.path.starts_with('/')) continue;
      EXPECT_EQ(found->path, mapping.path);
      EXPECT_EQ(found->offset - found->start, mapping.offset - mapping.start);
    }
  }
}

TEST_F(Core, LikeTheKernelsAgreesWithTheProcess) {
  const HangProcess process(kProgram);
  const auto live = open_live(process.pid());
  ASSERT_TRUE(live) << live.error();
  CoreScene scene;
  scene.signal = 6;
  const auto core = open_core(write(test::make_core(live.value(), scene)));
  ASSERT_TRUE(core) << core.error();
  expect_agreement(core.value(), live.value());
  EXPECT_EQ(core->signal, 6);
  EXPECT_EQ(core->signal_tid, process.pid());
  const proc::Mapping* const stack = core->mapping_of(*(*core->threads.front().registers)[symbols::kRsp]);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->path, "[stack]");
}

TEST_F(Core, LikeGcoresAgreesWithTheProcess) {
  const HangProcess process(kProgram);
  const auto live = open_live(process.pid());
  ASSERT_TRUE(live) << live.error();
  CoreScene scene;
  scene.has_file_segments = false;
  const auto core = open_core(write(test::make_core(live.value(), scene)));
  ASSERT_TRUE(core) << core.error();
  expect_agreement(core.value(), live.value());
  EXPECT_EQ(core->signal, 0);
}

TEST_F(Core, MadeByGcoreAgreesWithTheProcess) {
  const HangProcess process(kProgram);
  const std::string prefix = path("core");
  const std::string pid = std::to_string(process.pid());
  std::string words[] = {"gcore", "-o", prefix, pid};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t gcore = -1;
  const int failed = posix_spawnp(&gcore, "gcore", &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) GTEST_SKIP() << "gcore is not installed: package gdb";
  int status = 0;
  ASSERT_EQ(waitpid(gcore, &status, 0), gcore);
  ASSERT_EQ(status, 0);

  const auto core = open_core(prefix + "." + pid);
  ASSERT_TRUE(core) << core.error();
  const auto live = open_live(process.pid());
  ASSERT_TRUE(live) << live.error();
  expect_agreement(core.value(), live.value());
  expect_mappings(core.value(), live.value());
}

TEST_F(Core, TakesTheProgramFromTheNamedFile) {
  const std::string moved = path("program");
  std::filesystem::copy_file(kProgram, moved);
  std::vector<std::byte> bytes;
  std::map<std::int32_t, std::string> stacks;
  {
    const HangProcess process(moved);
    const auto live = open_live(process.pid());
    ASSERT_TRUE(live) << live.error();
    bytes = test::make_core(live.value());
    stacks = stacks_of(live.value());
  }
  std::filesystem::remove(moved);

  const auto without = open_core(write(bytes));
  ASSERT_TRUE(without) << without.error();
  EXPECT_TRUE(std::any_of(without->limits.begin(), without->limits.end(), [](const std::string& limit) {
    return limit.find("name its file with --exe") != std::string::npos;
  }));

  const auto with = open_core(write(bytes), {kProgram});
  ASSERT_TRUE(with) << with.error();
  EXPECT_TRUE(with->limits.empty()) << with->limits.front();
  EXPECT_EQ(with->exe, moved);
  EXPECT_EQ(stacks_of(with.value()), stacks);

  const std::string error = error_of(bytes, std::string(IMAGE_FIXTURES) + "/image_hang_O2");
  EXPECT_NE(error.find("is not a core of"), std::string::npos) << error;
  EXPECT_NE(error_of(bytes, "/dev/null").find("is not a readable x86-64 program"), std::string::npos);
}

TEST_F(Core, SaysWhatIsMissing) {
  const HangProcess process(kProgram);
  const auto live = open_live(process.pid());
  ASSERT_TRUE(live) << live.error();
  const auto limits_of = [&](std::vector<std::byte> bytes) {
    const auto core = open_core(write(std::move(bytes)));
    std::string all;
    if (!core) return core.error();
    for (const std::string& limit : core->limits) all += limit + "\n";
    return all;
  };
  CoreScene scene;
  std::vector<std::byte> cut = test::make_core(live.value());
  cut.resize(cut.size() / 2);
  EXPECT_NE(limits_of(cut).find("is cut"), std::string::npos);
  scene.has_first_pages = false;
  EXPECT_NE(limits_of(test::make_core(live.value(), scene)).find("does not show whether this is the file"),
            std::string::npos);
  scene = {};
  scene.has_files = false;
  EXPECT_NE(limits_of(test::make_core(live.value(), scene)).find("does not say which files"), std::string::npos);
  scene = {};
  scene.has_auxiliary = false;
  EXPECT_EQ(limits_of(test::make_core(live.value(), scene)), "");
}

TEST_F(Core, SaysWhatAFileIsThatIsNoCore) {
  const HangProcess process(kProgram);
  const auto live = open_live(process.pid());
  ASSERT_TRUE(live) << live.error();
  const auto text = [](std::string_view from) {
    std::vector<std::byte> bytes(from.size());
    std::transform(from.begin(), from.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    return bytes;
  };
  const auto says = [&](const std::vector<std::byte>& bytes, const char* what) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  says({}, "is empty");
  says(text("hello"), "is not a core file");
  says(text("\x28\xb5\x2f\xfd rest"), "unpack it first, `zstd -d ");
  says(text("\x1f\x8b rest"), "gzip -dk");
  says(text("\x04\x22\x4d\x18 rest"), "lz4 -d");
  says(text("\xfd\x37\x7a\x58\x5a rest"), "xz -dk");
  std::vector<std::byte> core = test::make_core(live.value());
  says({core.begin(), core.begin() + 40}, "is cut within");
  says({core.begin(), core.begin() + 100}, "is cut or damaged");
  CoreScene scene;
  scene.machine = 183;
  says(test::make_core(live.value(), scene), "aarch64");
  scene.machine = 3;
  says(test::make_core(live.value(), scene), "32-bit x86");
  core[16] = std::byte{3};  // e_type: ET_DYN
  says(core, "is not a core file but a program");
  EXPECT_NE(open_core("/nonexistent/core").error().find("No such file"), std::string::npos);
  EXPECT_NE(open_core(folder_.string()).error().find("not a regular file"), std::string::npos);
}

// A core in which the notes about threads take more than forksight reads. A thread that is left out may be the one that
// does not wait.
TEST_F(Core, IsRefusedIfNotAllThreadsCanBeRead) {
  constexpr std::uint64_t kMuch = std::uint64_t{128} << 20U;
  struct {
    Elf64_Ehdr header;
    Elf64_Phdr notes;
    Elf64_Nhdr large;
  } head{};
  std::memcpy(head.header.e_ident, ELFMAG, SELFMAG);
  head.header.e_ident[EI_CLASS] = ELFCLASS64;
  head.header.e_ident[EI_DATA] = ELFDATA2LSB;
  head.header.e_ident[EI_VERSION] = EV_CURRENT;
  head.header.e_type = ET_CORE;
  head.header.e_machine = EM_X86_64;
  head.header.e_version = EV_CURRENT;
  head.header.e_ehsize = sizeof head.header;
  head.header.e_phoff = offsetof(decltype(head), notes);
  head.header.e_phentsize = sizeof head.notes;
  head.header.e_phnum = 1;
  head.notes.p_type = PT_NOTE;
  head.notes.p_offset = offsetof(decltype(head), large);
  head.large = {0, static_cast<Elf64_Word>(kMuch - sizeof head.large), NT_PRSTATUS};
  const Elf64_Nhdr second{0, 16, NT_PRSTATUS};
  const std::uint64_t end = head.notes.p_offset + kMuch + sizeof second + second.n_descsz;
  head.notes.p_filesz = end - head.notes.p_offset;
  const std::string core = path("core");
  const int fd = ::open(core.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(end)), 0);  // the bytes of the first note take no room on the disk
  ASSERT_EQ(::pwrite(fd, &head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  ASSERT_EQ(::pwrite(fd, &second, sizeof second, static_cast<off_t>(head.notes.p_offset + kMuch)),
            static_cast<ssize_t>(sizeof second));
  ::close(fd);
  const auto opened = CoreFile::open(core);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), core + ": cannot be read: the notes about its threads take more than 128 MiB");
}

}  // namespace
}  // namespace forksight::image
