#include "render/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace forksight::render {
namespace {

constexpr std::size_t kLeastColumns = 40;
constexpr std::size_t kMostColumns = 200;

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::optional<std::size_t> read_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number > 0 ? std::optional(number) : std::nullopt;
}

// Returns no host on the Linux console, because the console shows the codes of links as text.
std::optional<std::string> find_link_host() {
  if (environment("TERM") == "linux") return std::nullopt;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::optional<std::string>(name.data()) : std::nullopt;
}

struct Terminal {
  bool is_terminal = false;
  std::size_t columns = 0;  // 0: not known
};

Terminal look_at(int fd) {
  Terminal terminal{::isatty(fd) == 1, 0};
  winsize size{};
  if (terminal.is_terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0) terminal.columns = size.ws_col;
  return terminal;
}

std::optional<std::array<Terminal, 3>> g_remembered;

Terminal terminal_of(int fd) {
  const bool is_known = g_remembered && fd >= 0 && static_cast<std::size_t>(fd) < g_remembered->size();
  return is_known ? (*g_remembered)[static_cast<std::size_t>(fd)] : look_at(fd);
}

}  // namespace

void remember_terminals() {
  if (!g_remembered) g_remembered = {look_at(STDIN_FILENO), look_at(STDOUT_FILENO), look_at(STDERR_FILENO)};
}

bool is_terminal(int fd) { return terminal_of(fd).is_terminal; }

bool wants_colour(int fd) {
  if (!environment("NO_COLOR").empty()) return false;
  const std::string_view terminal = environment("TERM");
  return !terminal.empty() && terminal != "dumb" && is_terminal(fd);
}

std::optional<std::size_t> find_columns(int fd) {
  std::optional<std::size_t> columns = read_number(environment("COLUMNS"));
  if (const std::size_t width = terminal_of(fd).columns; !columns && width > 0) columns = width;
  if (columns) columns = std::clamp(*columns, kLeastColumns, kMostColumns);
  return columns;
}

TextOptions options_for(int fd) {
  TextOptions options;
  options.colour = wants_colour(fd);
  options.columns = find_columns(fd);
  if (options.colour) options.link_host = find_link_host();
  std::error_code ignored;
  options.cwd = std::filesystem::current_path(ignored);
  return options;
}

}  // namespace forksight::render
