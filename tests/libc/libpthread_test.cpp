// Up to glibc 2.33, the functions for condition variables are in libpthread, a separate file. The analyzer must read
// the version from libc and the kind of condition variables from libpthread, in a live process and in a core.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/modules.hpp"
#include "libc/libc_file.hpp"
#include "proc/mappings.hpp"
#include "support/this_libc.hpp"

namespace forksight {
namespace {

// Changes the first letter of `name` everywhere in the file, so that the name is not found any more.
void hide_names(std::string& file, std::string_view name) {
  const std::string ended = std::string(name) + '\0';
  for (std::size_t at = file.find(ended); at != std::string::npos; at = file.find(ended, at)) file[at] = '?';
}

// Makes two copies of the test's own libc. In one copy the functions for condition variables are not found, in the
// other copy the version is not found.
class LibcInTwoFiles : public testing::Test {
 protected:
  void SetUp() override {
    Dl_info info;
    ASSERT_NE(::dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &info), 0);
    std::ifstream file(info.dli_fname, std::ios::binary);
    libc_.assign(std::istreambuf_iterator<char>(file), {});
    threads_ = libc_;
    hide_names(libc_, "pthread_cond_signal");
    hide_names(libc_, "pthread_cond_broadcast");
    hide_names(threads_, "gnu_get_libc_version");
    hide_names(threads_, "nptl_version");
    const abi::Libc of_libc = libc::read_libc(std::as_bytes(std::span(libc_)));
    const abi::Libc of_threads = libc::read_libc(std::as_bytes(std::span(threads_)));
    ASSERT_TRUE(of_libc.version == asked_.version);
    ASSERT_EQ(of_libc.condition, abi::ConditionKind::kUnknown);
    ASSERT_FALSE(of_threads.version.is_known());
    ASSERT_EQ(of_threads.condition, asked_.condition);
  }

  abi::Libc asked_ = test::this_libc();
  std::string libc_;
  std::string threads_;
};

TEST_F(LibcInTwoFiles, OfALiveProcess) {
  std::string folder = testing::TempDir() + "forksight-libc-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::vector<proc::Mapping> mappings;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    proc::Mapping mapping;
    mapping.path = folder + '/' + name;
    std::ofstream(mapping.path, std::ios::binary) << bytes;
    struct stat status {};
    EXPECT_EQ(::stat(mapping.path.c_str(), &status), 0);
    mapping.inode = status.st_ino;
    mappings.push_back(mapping);
  };
  add("libpthread-2.31.so", threads_);
  add("libc-2.31.so", libc_);
  const abi::Libc read = proc::libc_of(::getpid(), mappings);
  mappings.erase(mappings.begin());
  const abi::Libc without_threads = proc::libc_of(::getpid(), mappings);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(read.version == asked_.version);
  EXPECT_EQ(read.condition, asked_.condition);
  EXPECT_TRUE(without_threads.version == asked_.version);
  EXPECT_EQ(without_threads.condition, abi::ConditionKind::kUnknown);
}

TEST_F(LibcInTwoFiles, OfACore) {
  const auto make_module = [](const std::string& path, const std::string& bytes) {
    const auto content = std::as_bytes(std::span(bytes));
    symbols::Module module;
    module.owner = files::kCaller;
    module.path = path;
    module.bytes = std::make_shared<const std::vector<std::byte>>(content.begin(), content.end());
    return module;
  };
  std::vector<symbols::Module> modules{make_module("/lib/libpthread.so.0", threads_),
                                       make_module("/lib/libc.so.6", libc_)};
  const abi::Libc read = image::find_libc(modules, "/bin/program");
  EXPECT_TRUE(read.version == asked_.version);
  EXPECT_EQ(read.condition, asked_.condition);
  modules.erase(modules.begin());
  EXPECT_EQ(image::find_libc(modules, "/bin/program").condition, abi::ConditionKind::kUnknown);
}

}  // namespace
}  // namespace forksight
