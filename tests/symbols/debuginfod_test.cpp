// Tests that forksight gets debug files and programs from a debuginfod server. The test itself is the server, and
// answers each request with the same file.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include "dump.hpp"
#include "symbols/debug_files.hpp"

namespace forksight::symbols {
namespace {

class Server {
 public:
  explicit Server(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    content_.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    void* raw = &address;
    EXPECT_EQ(bind(listener_, static_cast<sockaddr*>(raw), length), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, static_cast<sockaddr*>(raw), &length), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    shutdown(listener_, SHUT_RDWR);  // ends accept() in the other thread
    thread_.join();
    close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& url() const { return url_; }
  // The kinds of files that were requested, in order: for example "executable debuginfo".
  std::string asked() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }

 private:
  void serve() {
    for (int client = -1; (client = accept(listener_, nullptr, nullptr)) >= 0; close(client)) {
      std::string request(4096, '\0');
      const ssize_t got = read(client, request.data(), request.size());
      request.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
      const std::string path = request.substr(0, request.find(" HTTP"));
      {
        const std::scoped_lock lock(mutex_);
        asked_ += (asked_.empty() ? "" : " ") + path.substr(path.rfind('/') + 1);
      }
      const std::string answer = "HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(content_.size()) +
                                 "\r\nConnection: close\r\n\r\n" + content_;
      for (std::size_t done = 0; done < answer.size();) {
        const ssize_t put = send(client, answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
        if (put <= 0) break;
        done += static_cast<std::size_t>(put);
      }
    }
  }

  int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string content_;
  std::string url_;
  std::mutex mutex_;
  std::string asked_;
  std::thread thread_;
};

class Debuginfod : public testing::Test {
 protected:
  void SetUp() override {
    if (dlopen("libdebuginfod.so.1", RTLD_NOW) == nullptr) GTEST_SKIP() << "libdebuginfod is not installed";
    std::string folder = testing::TempDir() + "forksight-debuginfod-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    setenv("DEBUGINFOD_CACHE_PATH", (folder_ / "cache").c_str(), 1);
    unsetenv("http_proxy");
    allow_debuginfod(true);
  }
  void TearDown() override {
    unsetenv("DEBUGINFOD_URLS");
    unsetenv("DEBUGINFOD_CACHE_PATH");
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Returns the function of the innermost frame of a fixture. The symbolizer looks for the fixture's program at `path`.
  static std::string innermost(const Dump& dump, const std::string& path) {
    std::vector<Module> modules = dump.modules;
    for (Module& module : modules) {
      if (module.path == dump.program) module.path = path;
    }
    Symbolizer symbolizer(modules);
    const model::Stack stack = symbolizer.unwind(dump.sample("template"));
    return stack.frames.empty() ? "no frame" : stack.frames[0].function;
  }

  std::filesystem::path folder_;
};

TEST_F(Debuginfod, GivesTheDebugFile) {
  const Dump dump = run_fixture("split");
  const std::filesystem::path program(dump.program);
  std::filesystem::copy_file(program, folder_ / "program");
  Server server(program.parent_path() / "scenes.debug");
  EXPECT_EQ(innermost(dump, folder_ / "program"), "");
  EXPECT_EQ(server.asked(), "");  // the environment names no server
  std::filesystem::copy_file(program, folder_ / "again");
  setenv("DEBUGINFOD_URLS", server.url().c_str(), 1);
  EXPECT_EQ(innermost(dump, folder_ / "again"), "app::Cache<long>::get");
  EXPECT_EQ(server.asked().rfind("debuginfo", 0), 0U) << server.asked();
}

TEST_F(Debuginfod, GivesTheProgramThatIsNotHere) {
  const Dump dump = run_fixture("O2");
  Server server(dump.program);
  setenv("DEBUGINFOD_URLS", server.url().c_str(), 1);
  EXPECT_EQ(innermost(dump, "/nonexistent/program"), "app::Cache<long>::get");
  EXPECT_EQ(server.asked(), "executable");
}

}  // namespace
}  // namespace forksight::symbols
