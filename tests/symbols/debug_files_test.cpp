#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

// Makes a folder with copies of the fixture's program and its debug file. A test may damage these copies.
class DebugLink : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/forksight-symbols-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    dump_ = run_fixture("split");
    const std::filesystem::path program(dump_.program);
    std::filesystem::copy_file(program, folder_ / program.filename());
    debug_file_ = folder_ / "scenes.debug";
    std::filesystem::copy_file(program.parent_path() / "scenes.debug", debug_file_);
    for (Module& module : dump_.modules) {
      if (module.path == dump_.program) module.path = folder_ / program.filename();
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string innermost_function() {
    Symbolizer symbolizer(dump_.modules);
    const model::Stack stack = symbolizer.unwind(dump_.sample("template"));
    return stack.frames.empty() ? "no frame" : stack.frames[0].function;
  }

  std::filesystem::path folder_;
  std::filesystem::path debug_file_;
  Dump dump_;
};

TEST_F(DebugLink, IsFollowed) { EXPECT_EQ(innermost_function(), "app::Cache<long>::get"); }

TEST_F(DebugLink, IsFollowedIntoTheDebugFolder) {
  std::filesystem::create_directory(folder_ / ".debug");
  std::filesystem::rename(debug_file_, folder_ / ".debug" / "scenes.debug");
  EXPECT_EQ(innermost_function(), "app::Cache<long>::get");
}

TEST_F(DebugLink, ToAFileOfAnotherBuildIsNotTaken) {
  std::filesystem::copy_file(std::string(SYMBOLS_FIXTURES) + "/split/library.debug", debug_file_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(innermost_function(), "");
}

TEST_F(DebugLink, ToNonsenseIsNotTaken) {
  std::ofstream(debug_file_) << "no ELF file";
  EXPECT_EQ(innermost_function(), "");
}

// A report must not wait for a network. So forksight does not connect to a debuginfod server by default, even if the
// environment variable DEBUGINFOD_URLS names one.
TEST(DebugFiles, AreNotAskedOfAServer) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ASSERT_GE(listener, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  void* raw = &address;
  ASSERT_EQ(bind(listener, static_cast<sockaddr*>(raw), length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, static_cast<sockaddr*>(raw), &length), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  setenv("DEBUGINFOD_URLS", url.c_str(), 1);

  const Dump dump = run_fixture("stripped");
  Symbolizer symbolizer(dump.modules);
  const model::Stack stack = symbolizer.unwind(dump.sample("template"));
  DataSymbol data;
  symbolizer.find_data(dump.data.at("global"), data);
  unsetenv("DEBUGINFOD_URLS");
  ASSERT_FALSE(stack.frames.empty());
  EXPECT_EQ(stack.frames[0].function, "");
  EXPECT_EQ(accept(listener, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(listener);
}

}  // namespace
}  // namespace forksight::symbols
