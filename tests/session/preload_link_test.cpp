#include "session/preload_link.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace forksight {
namespace {

namespace fs = std::filesystem;

class PreloadLink : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-link-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    shim_ = folder_ / "my tools" / "libforksight.so";
    fs::create_directories(shim_.parent_path());
    std::ofstream(shim_) << "shim";
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path make_folder(const char* name, mode_t mode) const {
    fs::create_directories(folder_ / name);
    EXPECT_EQ(::chmod((folder_ / name).c_str(), mode), 0);
    return folder_ / name;
  }
  void expect_link(const Result<fs::path>& link, const fs::path& below) const {
    ASSERT_TRUE(link) << link.error();
    EXPECT_TRUE(can_be_preloaded(link.value()));
    EXPECT_TRUE(link.value().native().starts_with(below.native() + "/")) << link.value();
    EXPECT_EQ(link.value().filename(), shim_.filename());
    EXPECT_EQ(fs::read_symlink(link.value()), shim_);
    struct stat status {};
    ASSERT_EQ(::stat(link.value().parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & (S_IWGRP | S_IWOTH), 0U);
  }

  fs::path folder_;
  fs::path shim_;
};

TEST_F(PreloadLink, AnOrdinaryPathNeedsNoLink) {
  const auto path = make_preload_path("/usr/lib/libforksight.so", {folder_ / "unused"});
  ASSERT_TRUE(path);
  EXPECT_EQ(path.value(), "/usr/lib/libforksight.so");
  EXPECT_FALSE(fs::exists(folder_ / "unused"));
}

TEST_F(PreloadLink, BlankColonAndDollarNeedALink) {
  EXPECT_TRUE(can_be_preloaded("/opt/a-b_c.d,e;f/libforksight.so"));
  for (const char* const name : {"/opt/a b/lib.so", "/opt/a:b/lib.so", "/opt/$LIB/lib.so"}) {
    EXPECT_FALSE(can_be_preloaded(name)) << name;
  }
}

TEST_F(PreloadLink, IsMadeOnceAndKept) {
  const fs::path own = folder_ / "cache" / "forksight";
  const auto first = make_preload_path(shim_, {own});
  expect_link(first, own);
  const auto again = make_preload_path(shim_, {own});
  expect_link(again, own);
  EXPECT_EQ(first.value(), again.value());
}

TEST_F(PreloadLink, EachInstallationHasItsOwn) {
  const fs::path other = folder_ / "other tools" / "libforksight.so";
  const auto one = make_preload_path(shim_, {folder_ / "links"});
  const auto two = make_preload_path(other, {folder_ / "links"});
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_NE(one.value(), two.value());
  EXPECT_EQ(fs::read_symlink(two.value()), other);
}

TEST_F(PreloadLink, ALinkToAnotherFileIsReplaced) {
  const auto link = make_preload_path(shim_, {folder_ / "links"});
  ASSERT_TRUE(link);
  fs::remove(link.value());
  fs::create_symlink("/elsewhere", link.value());
  expect_link(make_preload_path(shim_, {folder_ / "links"}), folder_ / "links");
}

TEST_F(PreloadLink, ASharedFolderIsUsedOnlyIfItIsSticky) {
  const fs::path loose = make_folder("loose", 0777);
  const fs::path sticky = make_folder("sticky", 01777);
  expect_link(make_preload_path(shim_, {loose / "own", sticky / "own"}), sticky / "own");
  EXPECT_FALSE(fs::exists(loose / "own"));
}

TEST_F(PreloadLink, AFolderThatOthersMayChangeIsNotUsed) {
  make_folder("first/own", 0777);
  fs::create_directories(folder_ / "second");
  fs::create_directory_symlink(folder_ / "my tools", folder_ / "second" / "own");
  fs::create_directories(folder_ / "third");
  std::ofstream(folder_ / "third" / "own") << "a file";
  const fs::path good = folder_ / "good" / "own";
  expect_link(make_preload_path(shim_, {folder_ / "first/own", folder_ / "second/own", folder_ / "third/own", good}),
              good);
}

TEST_F(PreloadLink, TheErrorNamesAllFoldersThatWereTried) {
  const auto link = make_preload_path(shim_, {folder_ / "a b" / "own", make_folder("loose", 0777) / "own"});
  ASSERT_FALSE(link);
  for (const std::string& part :
       {shim_.string() + ": LD_PRELOAD cannot name",
        (folder_ / "a b/own").string() + ": its path has such a character, too",
        (folder_ / "loose/own").string() + ": another user could change", std::string("XDG_CACHE_HOME")}) {
    EXPECT_NE(link.error().find(part), std::string::npos) << link.error();
  }
}

TEST_F(PreloadLink, TheUsersCacheComesFirst) {
  ::setenv("HOME", "/srv/u", 1);
  ::setenv("TMPDIR", "/var/tmp", 1);
  ::unsetenv("XDG_CACHE_HOME");
  const std::string own = "forksight-" + std::to_string(::geteuid());
  using Folders = std::vector<fs::path>;
  EXPECT_EQ(list_link_folders(), (Folders{"/srv/u/.cache/forksight", "/var/tmp/" + own, "/tmp/" + own}));
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(list_link_folders(), (Folders{"/cache/forksight", "/var/tmp/" + own, "/tmp/" + own}));
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // the XDG specification says that a relative path is ignored
  ::unsetenv("TMPDIR");
  EXPECT_EQ(list_link_folders(), (Folders{"/srv/u/.cache/forksight", "/tmp/" + own}));
}

}  // namespace
}  // namespace forksight
