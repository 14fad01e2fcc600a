// Tests which requests the opener grants. The opener is the process that opens files for another process of forksight.
// Foreign code may be running in the process that asks.
#include "guard/opener.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "files/named_paths.hpp"

namespace forksight::guard {
namespace {

namespace fs = std::filesystem;
using files::Request;
using files::Wish;

Request wish(Wish kind, const std::string& path) {
  Request request;
  request.wish = kind;
  request.path = path;
  return request;
}

files::Reply ask(Wish kind, const std::string& path) { return grant(wish(kind, path)); }

std::string own(const std::string& entry) { return "/proc/" + std::to_string(::getpid()) + "/" + entry; }

class Opener : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "forksight-opener-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes, mode_t mode = 0644) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::string elf(std::uint16_t type) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_type = type;
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + "rest";
  }

  fs::path folder_;
};

TEST_F(Opener, GivesFilesOfProcesses) {
  const std::string thread = "task/" + std::to_string(::gettid()) + "/";
  for (const std::string entry : {"mem", "maps", "environ", "syscall", "fd", "fdinfo/0", "map_files", "net/tcp"}) {
    for (const std::string& path : {own(entry), own(thread + entry)}) {
      if (entry == "map_files" && path != own(entry)) continue;  // a thread has no such folder
      const files::Reply reply = ask(Wish::kEntry, path);
      EXPECT_EQ(reply.error, 0) << path;
      EXPECT_TRUE(reply.file) << path;
    }
  }
}

TEST_F(Opener, GivesNoFilesThatProcessesHaveOpened) {
  for (const std::string& path :
       {own("root"), own("cwd"), own("exe"), own("root/etc/passwd"), own("cwd/x"), own("fd/0"), own("ns/net"),
        own("../1/mem"), own("task/../mem"), own("net/../mem"), own("fdinfo/.."), own(""), own("mem/"),
        std::string("/proc/self/mem"), std::string("/proc/kcore"), std::string("/proc/sys/kernel/hostname"),
        std::string("/etc/passwd"), std::string("proc/1/mem"), std::string()}) {
    const files::Reply reply = ask(Wish::kEntry, path);
    EXPECT_NE(reply.error, 0) << path;
    EXPECT_FALSE(reply.file) << path;
  }
}

TEST_F(Opener, GivesTextsOfLinks) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::string number = std::to_string(fd);
  EXPECT_EQ(ask(Wish::kLink, own("fd/" + number)).bytes, "/dev/null");
  EXPECT_EQ(ask(Wish::kLink, own("cwd")).bytes, fs::current_path().string());
  EXPECT_NE(ask(Wish::kLinks, own("fd")).bytes.find(number + " /dev/null"), std::string::npos);
  Request later = wish(Wish::kLinks, own("fd"));
  later.number = fd + 1;
  EXPECT_EQ(grant(later).bytes.find(number + " /dev/null"), std::string::npos);
  ::close(fd);
  const std::string link = (folder_ / "link").string();
  fs::create_symlink("/secret", link);
  EXPECT_EQ(ask(Wish::kLink, link).error, EACCES);
  EXPECT_EQ(ask(Wish::kLinks, folder_.string()).error, EACCES);
  EXPECT_EQ(ask(Wish::kLinkStatus, own("fd/0")).bytes.size(), sizeof(struct stat));
  EXPECT_EQ(ask(Wish::kLinkStatus, own("cwd")).error, EACCES);
  EXPECT_EQ(ask(Wish::kLinkStatus, link).error, EACCES);
}

TEST_F(Opener, GivesProgramsButNoOtherFiles) {
  EXPECT_TRUE(ask(Wish::kFile, write("library", elf(ET_DYN), 0600)).file);
  EXPECT_TRUE(ask(Wish::kFile, write("debug", elf(ET_REL), 0600)).file);
  EXPECT_EQ(ask(Wish::kFile, write("text", "a secret")).error, EACCES);
  EXPECT_EQ(ask(Wish::kFile, write("short", ELFMAG)).error, EACCES);
  EXPECT_EQ(ask(Wish::kFile, write("core", elf(ET_CORE))).error, EACCES);
  EXPECT_EQ(ask(Wish::kFile, "/dev/null").error, EINVAL);
}

TEST_F(Opener, GivesWhatTheCallerHasNamed) {
  const fs::path named = folder_ / "named";
  fs::create_directories(named / "inner");
  write("named/inner/run.json", "{}", 0600);
  const std::string beside = write("named.json", "{}");
  files::name_path(named.string());
  EXPECT_TRUE(ask(Wish::kFile, (named / "inner/run.json").string()).file);
  EXPECT_TRUE(ask(Wish::kFolder, named.string()).file);
  EXPECT_TRUE(ask(Wish::kFolder, (named / "inner").string()).file);
  EXPECT_EQ(ask(Wish::kFile, beside).error, EACCES);
  EXPECT_EQ(ask(Wish::kFile, (named / "../named.json").string()).error, EACCES);
  EXPECT_EQ(ask(Wish::kFolder, folder_.string()).error, EACCES);
  EXPECT_EQ(ask(Wish::kFolder, (named / "..").string()).error, EACCES);
}

// The path alone proves nothing, because a process can mount any file at the path of a queue, in a mount namespace of
// its own. So the file must also begin with the magic number of a queue (ipc/src/layout.hpp).
TEST_F(Opener, GivesQueues) {
  const auto give_file_of = [](const char* name, const std::string& bytes) {
    const int fd = ::memfd_create(name, MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, 4096), 0);
    EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    const int error = ask(Wish::kFile, own("fd/" + std::to_string(fd))).error;
    ::close(fd);
    return error;
  };
  const std::string magic = "fsktipq1";
  EXPECT_EQ(give_file_of("forksight-queue-test", magic), 0);
  EXPECT_EQ(give_file_of("forksight-queue-test", "a secret"), EACCES);
  EXPECT_EQ(give_file_of("other", magic), EACCES);
}

TEST_F(Opener, GivesACopyOfAFile) {
  Request request = wish(Wish::kFile, write("library", elf(ET_DYN), 0600));
  request.number = 1;
  const files::Reply reply = grant(request);
  ASSERT_TRUE(reply.file);
  struct stat original {
  }, copy{};
  ASSERT_EQ(::stat(request.path.c_str(), &original), 0);
  ASSERT_EQ(::fstat(reply.file.get(), &copy), 0);
  EXPECT_NE(copy.st_dev, original.st_dev);
  std::string bytes(elf(ET_DYN).size() + 1, '\0');
  EXPECT_EQ(::pread(reply.file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size() - 1));
  bytes.pop_back();
  EXPECT_EQ(bytes, elf(ET_DYN));
}

// A folder that the caller has named may belong to another user. This user may replace a folder inside by a link.
TEST_F(Opener, FollowsNoLinksBelowANamedFolder) {
  fs::create_directories(folder_ / "run/inner/deep");
  fs::create_directories(folder_ / "secret/deep");
  fs::create_directory_symlink(folder_ / "secret", folder_ / "run/link");
  fs::create_directory_symlink(folder_ / "run", folder_ / "named");
  files::name_path((folder_ / "named").string());
  EXPECT_TRUE(ask(Wish::kFolder, (folder_ / "named").string()).file);
  EXPECT_TRUE(ask(Wish::kFolder, (folder_ / "named/inner/deep").string()).file);
  EXPECT_FALSE(ask(Wish::kFolder, (folder_ / "named/link").string()).file);
  EXPECT_FALSE(ask(Wish::kFolder, (folder_ / "named/link/deep").string()).file);
  files::name_path((folder_ / "named/link").string());
  EXPECT_TRUE(ask(Wish::kFolder, (folder_ / "named/link/deep").string()).file);
}

// If each reply listed the folder again, the time would grow with the square of the number of descriptors.
TEST_F(Opener, ListsAFolderOnceForAllReplies) {
  ASSERT_EQ(ask(Wish::kLinks, own("fd")).error, 0);
  const int listed = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // may get the number that the listed folder had
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Request later = wish(Wish::kLinks, own("fd"));
  later.number = fd;
  EXPECT_EQ(grant(later).bytes.find(std::to_string(fd) + " /dev/null"), std::string::npos);
  EXPECT_NE(ask(Wish::kLinks, own("fd")).bytes.find(std::to_string(fd) + " /dev/null"), std::string::npos);
  ::close(fd);
  ::close(listed);
}

// If the opener has no descriptor left, the process that asks must not take the list of links or calls for empty.
TEST_F(Opener, TellsThatAListCouldNotBeRead) {
  // UBSan opens a pipe when it first sees a class, so each request is made once while there are descriptors.
  ASSERT_EQ(ask(Wish::kLinks, own("fd")).error, 0);
  ASSERT_EQ(ask(Wish::kCalls, own("task")).error, 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int links = ask(Wish::kLinks, own("fd")).error;
  const int calls = ask(Wish::kCalls, own("task")).error;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(links, EMFILE);
  EXPECT_EQ(calls, EMFILE);
}

// The opener of a command that examines no process refuses requests that read a process.
TEST_F(Opener, KnowsWhichRequestsReadAProcess) {
  for (const std::string entry : {"mem", "environ", "auxv", "syscall", "stack", "pagemap"}) {
    EXPECT_TRUE(reads_process(wish(Wish::kEntry, own(entry)))) << entry;
    EXPECT_TRUE(reads_process(wish(Wish::kEntry, own("task/1/" + entry)))) << entry;
  }
  EXPECT_TRUE(reads_process(wish(Wish::kCalls, own("task"))));
  EXPECT_TRUE(reads_process(wish(Wish::kSocket, "")));
  EXPECT_FALSE(reads_process(wish(Wish::kEntry, own("fd"))));
  EXPECT_FALSE(reads_process(wish(Wish::kEntry, own("maps"))));
  EXPECT_FALSE(reads_process(wish(Wish::kLinks, own("fd"))));
  EXPECT_FALSE(reads_process(wish(Wish::kFile, "/usr/lib/libx.so")));
}

TEST_F(Opener, GivesAUserOnlyWhatThisUserMayRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may read more than another user";
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  Request request = wish(Wish::kFile, write("library", elf(ET_DYN), 0600));
  request.owner = files::Owner{65534, 65534, {}};
  EXPECT_EQ(grant(request).error, EPERM);
  ASSERT_EQ(::chmod(request.path.c_str(), 0644), 0);
  EXPECT_TRUE(grant(request).file);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(grant(request).error, EPERM);
}

TEST(OpenerRequest, IsTheSameAfterEncodingAndDecoding) {
  Request request = wish(Wish::kFile, "/usr/lib/libx.so");
  request.number = 7;
  request.owner = files::Owner{1000, 1001, {4, 24, 1002}};
  request.mapped = files::MappedFile{254, 1, 0x1234567890};
  const auto arrived = files::decode_request(files::encode_request(request));
  ASSERT_TRUE(arrived && arrived->owner && arrived->mapped);
  EXPECT_EQ(arrived->wish, request.wish);
  EXPECT_EQ(arrived->path, request.path);
  EXPECT_EQ(arrived->number, 7);
  EXPECT_EQ(arrived->owner->uid, 1000U);
  EXPECT_EQ(arrived->owner->gid, 1001U);
  EXPECT_EQ(arrived->owner->groups, request.owner->groups);
  EXPECT_EQ(arrived->mapped->inode, 0x1234567890U);
}

TEST(OpenerRequest, OfForeignCodeIsRefused) {
  const std::string good = files::encode_request(wish(Wish::kFile, "/usr/lib/libx.so"));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(files::decode_request(good.substr(0, size))) << size;
  EXPECT_FALSE(files::decode_request(good + "x"));
  std::string unknown = good;
  unknown[0] = 99;  // the wish
  EXPECT_FALSE(files::decode_request(unknown));
  std::string cut = good;
  cut.back() = '\0';
  EXPECT_FALSE(files::decode_request(cut));
  std::string many = files::encode_request(wish(Wish::kFile, ""));
  many[40] = '\xff';  // the number of groups
  EXPECT_FALSE(files::decode_request(many));
}

TEST(OpenerMessage, HasSeveralRequests) {
  std::string message;
  for (const char* const path : {"/proc/1/fd", "", "/usr/lib/libx.so"})
    files::add_request(message, files::encode_request(wish(Wish::kLinks, path)));
  const std::vector<Request> requests = files::decode_requests(message);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].path, "/proc/1/fd");
  EXPECT_EQ(requests[1].path, "");
  EXPECT_EQ(requests[2].path, "/usr/lib/libx.so");
  EXPECT_TRUE(files::decode_requests(message + "x").empty());
  std::string too_large = message;
  too_large[1] = '\x7f';  // the size of the first request
  EXPECT_TRUE(files::decode_requests(too_large).empty());
  EXPECT_TRUE(files::decode_requests("").empty());
}

TEST(OpenerMessage, HasAsManyRepliesAsFit) {
  files::ReplyMessage message;
  files::Reply reply;
  reply.bytes.assign(files::kMaxReplyText, 'x');
  ASSERT_TRUE(message.has_room_for(reply));
  message.add(std::move(reply));
  EXPECT_FALSE(message.has_room_for(files::Reply{}));
  EXPECT_LE(message.bytes().size(), files::kMaxReplyBytes);

  files::ReplyMessage of_files;
  files::Reply file;
  for (int count = 0; count < 253; ++count) {
    file.file = files::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(of_files.has_room_for(file)) << count;
    of_files.add(std::move(file));
  }
  EXPECT_EQ(of_files.descriptors().size(), 253U);
  EXPECT_FALSE(of_files.has_room_for(files::Reply{})) << "the kernel sends at most 253 descriptors with a message";
}

TEST(OpenerMessage, NamesTheReplyWhoseDescriptorIsMissing) {
  files::ReplyMessage message;
  for (const int error : {0, EACCES, 0}) {
    files::Reply reply;
    reply.error = error;
    if (error == 0) reply.file = files::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    message.add(std::move(reply));
  }
  std::vector<files::Descriptor> arrived;
  arrived.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<files::Reply> replies = files::decode_replies(message.bytes(), std::move(arrived), 3);
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_TRUE(replies[0].file);
  EXPECT_EQ(replies[0].error, 0);
  EXPECT_EQ(replies[1].error, EACCES);
  EXPECT_FALSE(replies[2].file);
  EXPECT_EQ(replies[2].error, EMFILE);
  EXPECT_EQ(files::decode_replies(message.bytes(), {}, 1).size(), 1U);
  for (std::size_t size = 0; size < message.bytes().size(); ++size)
    EXPECT_LT(files::decode_replies(message.bytes().substr(0, size), {}, 3).size(), 3U) << size;
}

// An opener in a process of its own, which files::ask_opener() uses.
class RunningOpener {
 public:
  RunningOpener() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      serve_requests(ends[1], true);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    files::use_opener(socket_);
  }
  ~RunningOpener() {
    files::use_opener(-1);
    ::close(socket_);
    int status = -1;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
  }
  RunningOpener(const RunningOpener&) = delete;
  RunningOpener& operator=(const RunningOpener&) = delete;

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

TEST_F(Opener, RepliesToManyRequestsInTheirOrder) {
  const std::string library = write("lib.so", elf(ET_DYN));
  const RunningOpener opener;
  std::vector<Request> requests;
  for (int count = 0; count < 300; ++count) {
    requests.push_back(wish(Wish::kEntry, own("stat")));
    requests.push_back(wish(Wish::kFile, library));
    requests.push_back(wish(Wish::kEntry, "/etc/passwd"));
    requests.push_back(wish(Wish::kLink, own("exe")));
    if (count % 50 == 0) requests.push_back(wish(Wish::kFile, std::string(files::kMaxRequestBytes + 1, 'x')));
  }
  const std::vector<files::Reply> replies = files::ask_opener(requests);
  ASSERT_EQ(replies.size(), requests.size());
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  for (std::size_t at = 0; at < replies.size(); ++at) {
    SCOPED_TRACE(at);
    const Request& request = requests[at];
    if (request.wish == Wish::kLink) {
      EXPECT_EQ(replies[at].bytes, program);
    } else if (request.path.size() > files::kMaxRequestBytes) {
      EXPECT_EQ(replies[at].error, ENAMETOOLONG);
    } else if (request.path == "/etc/passwd") {
      EXPECT_EQ(replies[at].error, EACCES);
    } else {
      EXPECT_EQ(replies[at].error, 0);
      char first = 0;
      ASSERT_EQ(::pread(replies[at].file.get(), &first, 1, 0), 1);
      EXPECT_EQ(first == '\x7f', request.path == library);
    }
  }
}

}  // namespace
}  // namespace forksight::guard
