// Tests the layer that opens files: which files it opens, which files it refuses, and how it reads malformed ELF
// headers.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "files/bounded_json.hpp"
#include "files/budgets.hpp"
#include "files/cut_files.hpp"
#include "files/debug_budget.hpp"
#include "files/elf_tables.hpp"
#include "files/open_file.hpp"
#include "files/replace_file.hpp"

namespace forksight::files {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/forksight-files-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string make(const std::string& name, const std::string& content) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  fs::path folder_;
};

std::string content_of(const Descriptor& file) {
  std::string text(64, '\0');
  text.resize(read_at(file.get(), 0, std::as_writable_bytes(std::span(text))));
  return text;
}

TEST_F(Files, OpensRegularFilesAndLinksToThem) {
  const std::string path = make("file", "content");
  fs::create_symlink(path, folder_ / "link");
  EXPECT_EQ(content_of(open_regular(path)), "content");
  EXPECT_EQ(content_of(open_regular(folder_ / "link")), "content");
}

TEST_F(Files, OpensNothingElse) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  fs::create_symlink("/proc/self/environ", folder_ / "link");
  for (const std::string& path :
       {(folder_ / "fifo").string(), folder_.string(), std::string("/dev/zero"), std::string("/dev/ptmx"),
        (folder_ / "link").string(), std::string("/proc/self/mem"), std::string("/sys/kernel/notes")}) {
    if (!fs::exists(path)) continue;
    errno = 0;
    const bool is_open = static_cast<bool>(open_regular(path));
    EXPECT_FALSE(is_open) << path;
    EXPECT_EQ(errno, EINVAL) << path;
  }
  errno = 0;
  EXPECT_FALSE(open_regular(folder_ / "absent"));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Files, OpensTheOpenFilesOfAProcess) {
  const std::string path = make("file", "content");
  const Descriptor file = open_regular(path);
  fs::remove(path);
  EXPECT_EQ(content_of(open_regular("/proc/self/fd/" + std::to_string(file.get()))), "content");
}

// A process whose root is another folder. It runs until the destructor.
class Rooted {
 public:
  explicit Rooted(const fs::path& root) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(go_), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char good = ::chroot(root.c_str()) == 0 ? 'y' : 'n';
      char end = 0;
      ::close(go_[1]);
      if (::write(ready[1], &good, 1) == 1) (void)!::read(go_[0], &end, 1);
      ::_exit(0);
    }
    char good = 'n';
    (void)!::read(ready[0], &good, 1);
    is_rooted_ = good == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Rooted() {
    ::close(go_[0]);
    ::close(go_[1]);
    ::waitpid(pid_, nullptr, 0);
  }
  Rooted(const Rooted&) = delete;
  Rooted& operator=(const Rooted&) = delete;

  bool is_rooted() const { return is_rooted_; }
  std::string path(const std::string& inside) const { return "/proc/" + std::to_string(pid_) + "/root" + inside; }

 private:
  pid_t pid_ = -1;
  int go_[2] = {};
  bool is_rooted_ = false;
};

TEST_F(Files, ResolvesLinksOfAContainerWithinItsRoot) {
  const std::string outside = make("secret", "outside");
  fs::create_directories(folder_ / "root" / fs::path(outside).parent_path().relative_path());
  std::ofstream(folder_ / "root" / fs::path(outside).relative_path()) << "inside";
  fs::create_symlink(outside, folder_ / "root" / "absolute");
  fs::create_symlink("../../../../../../.." + outside, folder_ / "root" / "upwards");
  const Rooted process(folder_ / "root");
  if (!process.is_rooted()) GTEST_SKIP() << "chroot() is not permitted here";
  EXPECT_EQ(content_of(open_regular(process.path("/absolute"))), "inside");
  EXPECT_EQ(content_of(open_regular(process.path("/upwards"))), "inside");
  EXPECT_EQ(content_of(open_regular(process.path(outside))), "inside");
  // These paths contain a link to a link, a link in the middle of the path, and a ".." that leads above the root.
  fs::create_symlink("absolute", folder_ / "root" / "twice");
  fs::create_directory(folder_ / "root" / "below");
  fs::create_symlink("/", folder_ / "root" / "below" / "top");
  EXPECT_EQ(content_of(open_regular(process.path("/twice"))), "inside");
  EXPECT_EQ(content_of(open_regular(process.path("/below/top/below/../../.." + outside))), "inside");
}

TEST_F(Files, FollowsNoRingOfLinksOfAContainer) {
  fs::create_directories(folder_ / "root");
  fs::create_symlink("there", folder_ / "root" / "here");
  fs::create_symlink("here", folder_ / "root" / "there");
  const Rooted process(folder_ / "root");
  if (!process.is_rooted()) GTEST_SKIP() << "chroot() is not permitted here";
  errno = 0;
  EXPECT_FALSE(open_regular(process.path("/here")));
  EXPECT_EQ(errno, ELOOP);
  errno = 0;
  EXPECT_FALSE(open_regular(process.path("/")));
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_FALSE(open_regular(process.path("/absent/file")));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Files, OpensForRootOnlyTheMappedFileOrWhatItsOwnerMayRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has rights that others have not";
  const Owner nobody;
  const std::string path = make("file", "content");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  MappedFile mapped{static_cast<std::uint32_t>(status.st_dev >> 8U & 0xfffU),
                    static_cast<std::uint32_t>(status.st_dev & 0xffU), status.st_ino};
  EXPECT_TRUE(open_mapped(nobody, path, mapped));
  ++mapped.inode;
  errno = 0;
  EXPECT_FALSE(open_mapped(nobody, path, mapped));
  EXPECT_EQ(errno, EPERM);
  EXPECT_TRUE(open_mapped(kCaller, path, mapped));
  const std::string pid = std::to_string(::getpid());
  EXPECT_TRUE(open_mapped(nobody, "/proc/" + pid + "/exe", mapped)) << "this is the mapped file, also on overlayfs";
  const Descriptor file = open_regular(path);
  EXPECT_FALSE(open_mapped(nobody, "/proc/" + pid + "/fd/" + std::to_string(file.get()), mapped));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_FALSE(open_mapped(nobody, path, mapped)) << "nobody may not enter the folder";
  ASSERT_EQ(::chmod(folder_.c_str(), 0711), 0);
  EXPECT_TRUE(open_mapped(nobody, path, mapped));
}

TEST_F(Files, ChecksTheRightsOfOwnerAndGroups) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has rights that others have not";
  const std::string path = make("file", "content");
  ASSERT_EQ(::chmod(folder_.c_str(), 0711), 0);
  ASSERT_EQ(::chown(path.c_str(), 1001, 2001), 0);
  const auto may_open = [&](const Owner& owner, mode_t mode) {
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return static_cast<bool>(open_for(owner, path));
  };
  EXPECT_TRUE(may_open({1001, 1, {}}, 0400));
  EXPECT_FALSE(may_open({1001, 2001, {}}, 0044)) << "only the owner's bits count for the owner, not those of others";
  EXPECT_TRUE(may_open({1002, 2001, {}}, 0040));
  EXPECT_TRUE(may_open({1002, 1, {5, 2001}}, 0040));
  EXPECT_FALSE(may_open({1002, 1, {5, 2001}}, 0404));
  EXPECT_FALSE(may_open({1002, 1, {5}}, 0440));
  EXPECT_TRUE(may_open({1002, 1, {5}}, 0004));
}

TEST_F(Files, ALinkOfAnotherUserLeadsOnlyToWhatThatUserMayRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a link of another user";
  ASSERT_EQ(::chmod(folder_.c_str(), 0711), 0);
  const std::string path = make("file", "content");
  const std::string link = folder_ / "link";
  const std::string outer = folder_ / "outer";
  fs::create_symlink("file", link);
  fs::create_symlink("link", outer);  // a link of root to a link of the other user
  ASSERT_EQ(::lchown(link.c_str(), 1001, 1001), 0);
  for (const std::string& name : {link, outer}) {
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    errno = 0;
    EXPECT_FALSE(open_regular(name));
    EXPECT_EQ(errno, EPERM);
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    EXPECT_EQ(content_of(open_regular(name)), "content");
  }
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(::lchown(link.c_str(), 0, 0), 0);
  EXPECT_EQ(content_of(open_regular(outer)), "content");
  // A folder that is a link.
  fs::create_directory(folder_ / "closed");
  std::ofstream(folder_ / "closed" / "file") << "content";
  ASSERT_EQ(::chmod((folder_ / "closed").c_str(), 0700), 0);
  fs::create_symlink("closed", folder_ / "open");
  EXPECT_EQ(content_of(open_regular(folder_ / "open" / "file")), "content");
  ASSERT_EQ(::lchown((folder_ / "open").c_str(), 1001, 1001), 0);
  EXPECT_FALSE(open_regular(folder_ / "open" / "file"));
}

TEST_F(Files, RelativePathsAndPathsWithDotsAreOpened) {
  const std::string path = make("file", "content");
  const fs::path before = fs::current_path();
  fs::create_directory(folder_ / "inner");
  fs::current_path(folder_ / "inner");
  EXPECT_EQ(content_of(open_regular("../file")), "content");
  EXPECT_EQ(content_of(open_regular("./.././inner/..//file")), "content");
  EXPECT_EQ(content_of(open_for(kCaller, "../file")), "content");
  fs::current_path(before);
}

TEST_F(Files, ReadsATextUpToALimit) {
  const std::string path = make("file", "content");
  EXPECT_EQ(read_text(path, 7)->text, "content");
  EXPECT_NE(read_text(path, 6).error().find("has 7 bytes"), std::string::npos);
  EXPECT_NE(read_text("/dev/zero", 7).error().find("not a regular file"), std::string::npos);
}

TEST_F(Files, AFileThatWasCutReadsAsZeros) {
  const std::string path = make("file", std::string(3 * 4096, 'x'));
  const Descriptor file = open_regular(path);
  read_lost_pages_as_zeros();
  const auto* const bytes =
      static_cast<const volatile char*>(::mmap(nullptr, std::size_t{3} * 4096, PROT_READ, MAP_PRIVATE, file.get(), 0));
  ASSERT_NE(const_cast<const char*>(bytes), MAP_FAILED);
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(bytes[0], 'x');
  EXPECT_FALSE(has_read_lost_page());
  EXPECT_EQ(bytes[4096], '\0');
  EXPECT_EQ(bytes[2 * 4096 + 17], '\0');
  EXPECT_TRUE(has_read_lost_page());
  ::munmap(const_cast<char*>(bytes), std::size_t{3} * 4096);
  ::signal(SIGBUS, SIG_DFL);
}

TEST_F(Files, TablesOfThisProgramAreRead) {
  const Descriptor file = open_regular("/proc/self/exe");
  const auto tables = read_tables(file.get());
  ASSERT_TRUE(tables) << tables.error();
  EXPECT_NE(tables->find(".text"), nullptr);
  EXPECT_EQ(tables->find(".nothing"), nullptr);
  EXPECT_GT(tables->frame_bytes(), 0U);
  EXPECT_FALSE(read_tables(open_regular(make("text", "no ELF file at all, but some words")).get()));
}

TEST_F(Files, ABuildIdIsFoundBehindOtherNotes) {
  struct Notes {
    Elf64_Nhdr first{4, 3, 1};
    char first_owner[4] = {'G', 'N', 'U', 0};
    char first_body[4] = {};
    Elf64_Nhdr second{4, 4, NT_GNU_BUILD_ID};
    char second_owner[4] = {'G', 'N', 'U', 0};
    char second_body[4] = {1, 2, 3, 4};
  } notes;
  const auto bytes = std::as_bytes(std::span(&notes, 1));
  EXPECT_EQ(find_build_id(bytes, 4), (std::vector<std::uint8_t>{1, 2, 3, 4}));
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_TRUE(find_build_id(bytes.first(size), 4).empty());
  notes.first.n_descsz = 0xffffffff;
  EXPECT_TRUE(find_build_id(bytes, 4).empty());
}

ElfTables tables_that_unpack_to(std::uint64_t bytes) {
  ElfTables tables;
  ElfSection section;
  section.unpacked_size = bytes;
  tables.sections.push_back(section);
  return tables;
}

TEST_F(Files, AFileIsChargedOnce) {
  const Descriptor file = open_regular(make("file", "content"));
  const ElfTables large = tables_that_unpack_to(kMaxUnpackedBytes);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(charge_debug_file(file.get(), large, "file", true).may_read);
}

TEST_F(Files, TheSumOfAllFilesIsBounded) {
  const ElfTables large = tables_that_unpack_to(kMaxUnpackedBytes);
  std::size_t read = 0;
  std::string limit;
  for (int i = 0; i < 16; ++i) {
    const Descriptor file = open_regular(make("file" + std::to_string(i), "content"));
    const DebugVerdict verdict = charge_debug_file(file.get(), large, "file", true);
    if (verdict.may_read) ++read;
    limit = verdict.limit;
  }
  EXPECT_LE(read, kMaxUnpackedBytesOfRun / kMaxUnpackedBytes);
  EXPECT_NE(limit.find("no source lines of this file"), std::string::npos);
  const Descriptor small = open_regular(make("small", "content"));
  EXPECT_TRUE(charge_debug_file(small.get(), tables_that_unpack_to(0), "small", true).may_read);
}

TEST_F(Files, ItemsOfJsonAreCounted) {
  EXPECT_EQ(find_json_fault(R"({"a": [1, "b", {}]})", {5, 3}), "");
  EXPECT_EQ(find_json_fault(R"({"a": [1, "b", {}]})", {4, 3}), "has more than 4 items");
  EXPECT_NE(find_json_fault(R"({"a": [1, "b", {}]})", {5, 2}), "");
  EXPECT_NE(find_json_fault("{", {5, 2}), "");
}

TEST_F(Files, ANewFileReplacesALink) {
  const std::string victim = make("victim", "precious");
  fs::create_symlink(victim, folder_ / "file");
  EXPECT_EQ(replace_file(folder_ / "file", "new", 0600), "");
  EXPECT_FALSE(fs::is_symlink(folder_ / "file"));
  EXPECT_EQ(content_of(open_regular(folder_ / "file")), "new");
  EXPECT_EQ(content_of(open_regular(victim)), "precious");
  EXPECT_NE(replace_file(folder_ / "absent" / "file", "new", 0600), "");
}

TEST_F(Files, AFileInAnOpenFolderIsReplaced) {
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(replace_file(folder.get(), "file", "one", 0600), "");
  EXPECT_EQ(replace_file(folder.get(), "file", "two", 0600), "");
  EXPECT_EQ(content_of(open_regular(folder_ / "file")), "two");
  EXPECT_NE(replace_file(-1, "file", "three", 0600), "");
}

// While an object of this class exists, a file of this process may not exceed `bytes`.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(Files, AReportThatDoesNotFitLeavesTheOldOne) {
  const std::string path = make("report", "old");
  auto output = open_output(path);
  ASSERT_TRUE(output) << output.error();
  EXPECT_EQ(content_of(open_regular(path)), "old");
  {
    const SizeLimit limit(2);
    EXPECT_EQ(output->write("a new one"), EFBIG);
    EXPECT_EQ(write_output(path, "a new one"), "File too large");
  }
  EXPECT_EQ(content_of(open_regular(path)), "old");
  EXPECT_EQ(output->write("a new one"), 0);
  EXPECT_EQ(output->write("newer"), 0);
  EXPECT_EQ(content_of(open_regular(path)), "newer");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Files, ANewReportThatDoesNotFitLeavesNoFile) {
  auto output = open_output(folder_ / "report");
  ASSERT_TRUE(output) << output.error();
  EXPECT_TRUE(fs::exists(folder_ / "report"));
  {
    const SizeLimit limit(2);
    EXPECT_EQ(output->write("a new one"), EFBIG);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(output->write("a new one"), 0);
  EXPECT_EQ(content_of(open_regular(folder_ / "report")), "a new one");
}

}  // namespace
}  // namespace forksight::files
