// Tests which width and which colours forksight chooses for a terminal. The test makes a pseudo-terminal.
#include "render/terminal.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

namespace forksight::render {
namespace {

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"COLUMNS", "NO_COLOR", "TERM"}) {
      const char* const value = std::getenv(name);
      kept_.push_back({name, value != nullptr, value == nullptr ? "" : value});
      ::unsetenv(name);
    }
    ::setenv("TERM", "xterm-256color", 1);
    ASSERT_EQ(::openpty(&master_, &fd_, nullptr, nullptr, nullptr), 0);
    resize(123);
  }
  void TearDown() override {
    ::close(fd_);
    ::close(master_);
    for (const Kept& kept : kept_) {
      if (kept.is_set) ::setenv(kept.name.c_str(), kept.value.c_str(), 1);
      if (!kept.is_set) ::unsetenv(kept.name.c_str());
    }
  }
  void resize(unsigned short columns) const {
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(::ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  int fd_ = -1;

 private:
  struct Kept {
    std::string name;
    bool is_set = false;
    std::string value;
  };
  std::vector<Kept> kept_;
  int master_ = -1;
};

TEST_F(Terminal, GivesItsWidth) {
  EXPECT_EQ(find_columns(fd_), 123U);
  resize(10);
  EXPECT_EQ(find_columns(fd_), 40U);
  resize(1000);
  EXPECT_EQ(find_columns(fd_), 200U);
  resize(0);
  EXPECT_FALSE(find_columns(fd_).has_value());
  EXPECT_FALSE(find_columns(-1).has_value());
}

TEST_F(Terminal, IsOverriddenByANumberInTheEnvironment) {
  ::setenv("COLUMNS", "77", 1);
  EXPECT_EQ(find_columns(fd_), 77U);
  EXPECT_EQ(find_columns(-1), 77U);
  ::setenv("COLUMNS", "7", 1);
  EXPECT_EQ(find_columns(fd_), 40U);
  for (const char* const wrong : {"", "0", "-5", "wide", "80x24", "99999999999999999999999"}) {
    ::setenv("COLUMNS", wrong, 1);
    EXPECT_EQ(find_columns(fd_), 123U) << wrong;
    EXPECT_FALSE(find_columns(-1).has_value()) << wrong;
  }
}

TEST_F(Terminal, HasColourUnlessThatIsForbidden) {
  EXPECT_TRUE(wants_colour(fd_));
  EXPECT_TRUE(options_for(fd_).link_host.has_value());
  EXPECT_FALSE(wants_colour(-1));
  EXPECT_FALSE(options_for(-1).link_host.has_value());
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colour(fd_));
  EXPECT_FALSE(options_for(fd_).link_host.has_value());
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wants_colour(fd_));
  EXPECT_FALSE(options_for(fd_).link_host.has_value());
  ::unsetenv("TERM");
  EXPECT_FALSE(wants_colour(fd_));
}

TEST_F(Terminal, OfTheConsoleHasNoLinks) {
  ::setenv("TERM", "linux", 1);
  EXPECT_TRUE(wants_colour(fd_));
  EXPECT_FALSE(options_for(fd_).link_host.has_value());
}

}  // namespace
}  // namespace forksight::render
