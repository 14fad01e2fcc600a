#include "proc/proc_fs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>

#include "files/descriptor.hpp"
#include "files/opener.hpp"

namespace forksight::proc {
namespace {

constexpr std::size_t kMostOfFile = std::size_t{64} << 10U;  // of a small file

std::mutex g_failure_mutex;
std::string g_failure;  // the first failure
std::uint64_t g_failures = 0;
int g_last_failure = 0;  // an errno

// True if the error shows a lack of resources or a failure of the device, and not a lack of rights. Every user may list
// the processes, so each error from /proc itself counts.
bool is_failure(const std::string& path, int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || (error != 0 && path == "/proc");
}

void note_failure(const std::string& path, int error) {
  if (!is_failure(path, error)) return;
  const std::scoped_lock lock(g_failure_mutex);
  ++g_failures;
  g_last_failure = error;
  if (g_failure.empty()) g_failure = fmt::format("{} could not be read: {}", path, std::strerror(error));
}

ReadOutcome outcome_of(const std::string& path, int error) {
  note_failure(path, error);
  return error == EACCES || error == EPERM || error == ENOSYS ? ReadOutcome::kRefused : ReadOutcome::kGone;
}

// True for texts that the kernel gives in one piece. After a short read of such a text, no second read is needed. This
// saves a system call for texts that are read often. Texts with many records (maps, children) may come in several short
// pieces.
bool is_single_record(std::string_view path) {
  return path.ends_with("/stat") || path.ends_with("/status") || path.ends_with("/syscall") ||
         path.ends_with("/sched") || path.ends_with("/wchan");
}

}  // namespace

bool has_entry(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

int open_entry(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0 || !files::may_help(errno)) return fd;
  files::Reply reply = files::ask_opener(files::Wish::kEntry, path);
  errno = reply.error;
  return reply.file.release();
}

namespace {

ReadText read_opened(const std::string& path, int fd, std::size_t limit) {
  ReadText result;
  result.outcome = ReadOutcome::kOk;
  std::array<char, 4096> buffer;
  while (result.text.size() < limit) {
    const std::size_t wanted = std::min(buffer.size(), limit - result.text.size());
    const ssize_t got = ::read(fd, buffer.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      result.outcome = outcome_of(path, errno);
      result.text.clear();
    }
    if (got <= 0) break;
    result.text.append(buffer.data(), static_cast<std::size_t>(got));
    if (static_cast<std::size_t>(got) < wanted && is_single_record(path)) break;
  }
  return result;
}

}  // namespace

ReadText read_file(const std::string& path, std::size_t limit) {
  const files::Descriptor file(open_entry(path));
  if (file) return read_opened(path, file.get(), limit);
  ReadText result;
  result.outcome = outcome_of(path, errno);
  return result;
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (length < 0 && files::may_help(errno)) {
    files::Reply reply = files::ask_opener(files::Wish::kLink, path);
    if (reply.error == 0) return std::move(reply.bytes);
    errno = reply.error;
  }
  const int error = errno;
  if (length < 0) note_failure(path, error);
  errno = error;
  if (length < 0 || static_cast<std::size_t>(length) >= buffer.size()) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

LinkReader::LinkReader(std::string folder)
    : folder_(std::move(folder)), opened_(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

std::optional<std::string> LinkReader::read(std::int32_t number, bool& is_refused) const {
  std::array<char, 4096> buffer;
  if (opened_) {
    const std::string name = std::to_string(number);
    const ssize_t length = ::readlinkat(opened_.get(), name.c_str(), buffer.data(), buffer.size());
    if (length >= 0 && static_cast<std::size_t>(length) < buffer.size())
      return std::string(buffer.data(), static_cast<std::size_t>(length));
    if (length < 0 && errno == ENOENT) return std::nullopt;
  }
  errno = 0;
  auto text = read_link(fmt::format("{}/{}", folder_, number));
  if (!text && (errno == EACCES || errno == EPERM)) is_refused = true;
  return text;
}

namespace {

// The numbered texts of a folder, as the process behind files::ask_opener() sends them in one or several replies.
class ReceivedTexts {
 public:
  // Adds the texts of a reply. After an error, or after the last text, is_complete() is true.
  void add(const std::string& folder, const files::Reply& reply) {
    is_complete_ = true;
    if (reply.error != 0) {
      note_failure(folder, reply.error);
      is_refused_ = true;
      return;
    }
    std::string_view rest = reply.bytes;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.empty()) {
        is_complete_ = true;
        return;
      }
      const std::size_t blank = line.find(' ');
      const auto number = parse_decimal(line.substr(0, blank));
      is_complete_ = blank == std::string_view::npos || !number || *number < first_ || *number >= INT32_MAX;
      if (is_complete_) return;
      texts_.push_back({static_cast<std::int32_t>(*number), std::string(line.substr(blank + 1))});
      first_ = texts_.back().number + 1;
    }
  }

  bool is_complete() const { return is_complete_; }
  std::int32_t first() const { return first_; }  // the first number that the next reply must have
  // nullopt: the process behind files::ask_opener() refuses.
  std::optional<std::vector<Link>> take() { return is_refused_ ? std::nullopt : std::optional(std::move(texts_)); }

 private:
  std::vector<Link> texts_;
  std::int32_t first_ = 0;
  bool is_complete_ = false;
  bool is_refused_ = false;
};

// Asks the process behind files::ask_opener() for the numbered texts (kLinks or kCalls) of these folders: for as many of
// each folder as it sends in its first reply.
std::vector<ReceivedTexts> ask_for_first_texts(files::Wish wish, std::span<const std::string> folders) {
  std::vector<files::Request> requests;
  for (const std::string& folder : folders) requests.push_back({.wish = wish, .path = folder});
  const std::vector<files::Reply> replies = files::ask_opener(requests);
  std::vector<ReceivedTexts> all(folders.size());
  for (std::size_t at = 0; at < folders.size(); ++at) all[at].add(folders[at], replies[at]);
  return all;
}

// Asks for all texts of these folders. Returns nullopt for each folder that the other process refuses.
std::vector<std::optional<std::vector<Link>>> ask_for_texts(files::Wish wish, std::span<const std::string> folders) {
  std::vector<ReceivedTexts> first = ask_for_first_texts(wish, folders);
  std::vector<std::optional<std::vector<Link>>> all;
  for (std::size_t at = 0; at < folders.size(); ++at) {
    ReceivedTexts& texts = first[at];
    while (!texts.is_complete()) texts.add(folders[at], files::ask_opener(wish, folders[at], texts.first()));
    all.push_back(texts.take());
  }
  return all;
}

}  // namespace

namespace {

bool goes_on_always() { return true; }

// Asks the process behind files::ask_opener() for the links of these folders. Returns nullopt for each folder that this
// process refuses.
std::vector<std::optional<ListedLinks>> ask_for_links(std::span<const std::string> folders,
                                                      const std::function<bool()>& goes_on) {
  std::vector<std::optional<ListedLinks>> all;
  std::vector<ReceivedTexts> first = ask_for_first_texts(files::Wish::kLinks, folders);
  for (std::size_t at = 0; at < folders.size(); ++at) {
    ReceivedTexts& texts = first[at];
    while (!texts.is_complete() && goes_on())
      texts.add(folders[at], files::ask_opener(files::Wish::kLinks, folders[at], texts.first()));
    const bool is_cut = !texts.is_complete();
    auto links = texts.take();
    all.push_back(links ? std::optional(ListedLinks{ReadOutcome::kOk, is_cut, std::move(*links)}) : std::nullopt);
  }
  return all;
}

ListedLinks read_links_itself(const std::string& folder, const std::function<bool()>& goes_on) {
  constexpr std::size_t kAtATime = 64;  // links that are read between two calls of `goes_on`
  const ListedNumbers listed = list_numbers(folder);
  ListedLinks links{listed.outcome, false, {}};
  if (listed.numbers.empty()) return links;
  const LinkReader reader(folder);
  bool is_refused = false;
  for (std::size_t at = 0; at < listed.numbers.size() && !is_refused; ++at) {
    links.is_cut = at % kAtATime == kAtATime - 1 && !goes_on();
    if (links.is_cut) break;
    if (auto text = reader.read(listed.numbers[at], is_refused))
      links.links.push_back({listed.numbers[at], std::move(*text)});
  }
  if (is_refused) links.outcome = ReadOutcome::kRefused;
  return links;
}

}  // namespace

void read_links(std::span<const std::string> folders, const std::function<bool()>& goes_on,
                const std::function<void(ListedLinks)>& use) {
  constexpr std::size_t kFolders = 16;  // folders that are read together
  for (std::size_t start = 0; start < folders.size(); start += kFolders) {
    const auto some = folders.subspan(start, std::min(kFolders, folders.size() - start));
    if (!goes_on()) {
      for (std::size_t at = 0; at < some.size(); ++at) use({ReadOutcome::kOk, true, {}});
      continue;
    }
    std::vector<std::string> closed;  // folders that only the process behind files::ask_opener() can read
    if (files::has_opener()) {
      const auto is_closed = [](const std::string& folder) { return ::access(folder.c_str(), X_OK) != 0; };
      std::ranges::copy_if(some, std::back_inserter(closed), is_closed);
    }
    std::vector<std::optional<ListedLinks>> received = ask_for_links(closed, goes_on);
    for (std::size_t asked = 0; const std::string& folder : some) {
      auto links = asked < closed.size() && folder == closed[asked] ? std::move(received[asked++]) : std::nullopt;
      use(links ? std::move(*links) : read_links_itself(folder, goes_on));
    }
  }
}

ListedLinks read_links(const std::string& folder) {
  ListedLinks links;
  read_links(std::span(&folder, 1), goes_on_always, [&](ListedLinks read) { links = std::move(read); });
  return links;
}

namespace {

std::vector<files::Reply> ask_about(files::Wish wish, std::span<const std::string> paths) {
  std::vector<files::Request> requests;
  if (files::has_opener()) {
    for (const std::string& path : paths) requests.push_back({.wish = wish, .path = path});
  }
  return files::ask_opener(requests);
}

}  // namespace

std::vector<ReadText> read_files(std::span<const std::string> paths) {
  const std::vector<files::Reply> replies = ask_about(files::Wish::kEntry, paths);
  std::vector<ReadText> texts;
  for (std::size_t at = 0; at < paths.size(); ++at) {
    const bool is_open = !replies.empty() && replies[at].file;
    texts.push_back(is_open ? read_opened(paths[at], replies[at].file.get(), kMostOfFile) : read_file(paths[at]));
  }
  return texts;
}

std::vector<unsigned> read_link_modes(std::span<const std::string> paths) {
  const std::vector<files::Reply> replies = ask_about(files::Wish::kLinkStatus, paths);
  std::vector<unsigned> modes;
  for (std::size_t at = 0; at < paths.size(); ++at) {
    struct stat status {};
    const bool is_told = !replies.empty() && replies[at].bytes.size() == sizeof status;
    if (is_told) std::memcpy(&status, replies[at].bytes.data(), sizeof status);
    const bool is_read = is_told || ::lstat(paths[at].c_str(), &status) == 0;
    modes.push_back(is_read ? status.st_mode : 0);
  }
  return modes;
}

std::vector<std::vector<ReadText>> read_calls(std::span<const ThreadsOf> processes) {
  std::vector<std::string> folders;
  if (files::has_opener()) {
    for (const ThreadsOf& process : processes) folders.push_back(proc_path(process.pid, "task"));
  }
  const std::vector<std::optional<std::vector<Link>>> received = ask_for_texts(files::Wish::kCalls, folders);
  std::vector<std::vector<ReadText>> all;
  for (std::size_t at = 0; at < processes.size(); ++at) {
    const auto& [pid, tids] = processes[at];
    std::vector<ReadText>& calls = all.emplace_back(tids.size());
    if (received.empty() || !received[at]) {
      const auto read = [pid = pid](std::int32_t tid) { return read_file(task_path(pid, tid, "syscall")); };
      std::ranges::transform(tids, calls.begin(), read);
      continue;
    }
    // A thread that is missing in the answer has ended.
    for (const auto& [tid, text] : *received[at]) {
      const auto place = std::ranges::lower_bound(tids, tid);
      if (place == tids.end() || *place != tid || text.size() < 2) continue;
      ReadText& call = calls[static_cast<std::size_t>(place - tids.begin())];
      call.outcome = text[0] == '0' ? ReadOutcome::kOk : text[0] == '2' ? ReadOutcome::kRefused : ReadOutcome::kGone;
      call.text = text.substr(2);
    }
  }
  return all;
}

ListedNumbers list_numbers(const std::string& folder) {
  ListedNumbers listed;
  DIR* directory = files::open_folder(folder, files::Wish::kEntry);
  if (directory == nullptr) {
    listed.outcome = outcome_of(folder, errno);
    return listed;
  }
  listed.outcome = ReadOutcome::kOk;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(directory);
    if (entry == nullptr) break;
    const auto number = parse_decimal(entry->d_name);
    if (number && *number >= 0 && *number <= std::numeric_limits<std::int32_t>::max()) {
      listed.numbers.push_back(static_cast<std::int32_t>(*number));
    }
  }
  note_failure(folder, errno);  // 0 at the end of the directory
  ::closedir(directory);
  std::sort(listed.numbers.begin(), listed.numbers.end());
  return listed;
}

ReadOutcome try_links(const std::string& folder) {
  DIR* const directory = files::open_folder(folder, files::Wish::kEntry);
  if (directory == nullptr) return outcome_of(folder, errno);
  bool is_refused = false;
  const LinkReader reader(folder);
  while (const dirent* const entry = ::readdir(directory)) {
    const auto number = parse_decimal(entry->d_name);
    if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) continue;
    if (reader.read(static_cast<std::int32_t>(*number), is_refused) || is_refused) break;
  }
  ::closedir(directory);
  return is_refused ? ReadOutcome::kRefused : ReadOutcome::kOk;
}

std::string find_resource_failure() {
  const std::scoped_lock lock(g_failure_mutex);
  return g_failure;
}

std::uint64_t count_failures() {
  const std::scoped_lock lock(g_failure_mutex);
  return g_failures;
}

int last_failure() {
  const std::scoped_lock lock(g_failure_mutex);
  return g_last_failure;
}

std::string proc_path(std::int32_t pid, std::string_view entry) { return fmt::format("/proc/{}/{}", pid, entry); }

std::string task_path(std::int32_t pid, std::int32_t tid, std::string_view entry) {
  return fmt::format("/proc/{}/task/{}/{}", pid, tid, entry);
}

std::optional<Stat> read_stat(std::int32_t pid) {
  const ReadText text = read_file(proc_path(pid, "stat"));
  return text ? parse_stat(text.text) : std::nullopt;
}

std::optional<Stat> read_thread_stat(std::int32_t tid) { return parse_stat(read_file(task_path(tid, tid, "stat")).text); }

bool is_same_process(const ProcessKey& key) {
  const auto stat = read_stat(key.pid);
  return stat && stat->start_ticks == key.start_ticks;
}

bool is_ending(const ProcessKey& key) {
  if (!is_same_process(key)) return true;
  // Looks at each thread, because the first thread may have ended while others go on.
  const std::vector<std::int32_t> tids = list_numbers(proc_path(key.pid, "task")).numbers;
  return std::ranges::all_of(tids, [&](std::int32_t tid) {
    const auto stat = parse_stat(read_file(task_path(key.pid, tid, "stat")).text);
    const auto status = parse_status(read_file(task_path(key.pid, tid, "status")).text);
    return !stat || !status || is_ending(*stat, *status);
  });
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

std::optional<std::int32_t> find_thread_that_lives(std::int32_t pid) {
  // A thread that was listed may start another thread and end before its state is read. So if the listed threads have
  // ended, the threads are listed again.
  constexpr int kMostLists = 8;
  const auto lives = [](const Stat& stat) { return stat.state != 'Z' && stat.state != 'X'; };
  for (int list = 0; list < kMostLists; ++list) {
    const auto first = read_stat(pid);
    if (!first || is_zombie(*first)) return std::nullopt;
    if (lives(*first)) return pid;
    for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
      const auto stat = parse_stat(read_file(task_path(pid, tid, "stat")).text);
      if (stat && lives(*stat)) return tid;
    }
  }
  return std::nullopt;
}

std::int32_t find_living_thread(std::int32_t pid) { return find_thread_that_lives(pid).value_or(pid); }
bool has_ended(std::int32_t pid) { return !find_thread_that_lives(pid); }

std::string read_exe(std::int32_t pid) {
  auto link = read_link(proc_path(pid, "exe"));
  if (!link) link = read_link(proc_path(find_living_thread(pid), "exe"));
  std::string exe = link.value_or("");
  constexpr std::string_view kDeleted = " (deleted)";
  if (exe.ends_with(kDeleted)) exe.resize(exe.size() - kDeleted.size());
  return exe;
}

std::vector<std::string> read_cmdline(std::int32_t pid) {
  constexpr std::size_t kMaxBytes = 16U << 10U;  // enough to recognise a program
  ReadText text = read_file(proc_path(pid, "cmdline"), kMaxBytes);
  // A first thread that has ended no longer shows the memory that contains the arguments.
  if (text.text.empty()) text = read_file(proc_path(find_living_thread(pid), "cmdline"), kMaxBytes);
  std::vector<std::string> arguments;
  for (std::size_t start = 0; start < text.text.size();) {
    std::size_t end = text.text.find('\0', start);
    if (end == std::string::npos) end = text.text.size();
    arguments.push_back(text.text.substr(start, end - start));
    start = end + 1;
  }
  return arguments;
}

std::string read_environment(std::int32_t pid) { return read_file(proc_path(find_living_thread(pid), "environ")).text; }

std::vector<std::int32_t> read_children(std::int32_t pid) {
  std::vector<std::int32_t> children;
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    const std::vector<std::int32_t> some = parse_pids(read_file(task_path(pid, tid, "children")).text);
    children.insert(children.end(), some.begin(), some.end());
  }
  return children;
}

std::optional<std::uint64_t> find_shim(std::int32_t pid) {
  constexpr std::size_t kMaxMaps = 16U << 20U;
  const ReadText maps = read_file(proc_path(find_living_thread(pid), "maps"), kMaxMaps);
  if (!maps || maps.text.empty() || maps.text.size() >= kMaxMaps) return std::nullopt;
  const std::size_t name = maps.text.find("/libforksight.so");
  if (name == std::string::npos) return 0;
  const std::size_t line = maps.text.rfind('\n', name) + 1;  // for the first line, npos + 1 is 0
  const auto mapping = parse_mapping(std::string_view(maps.text).substr(line, maps.text.find('\n', name) - line));
  return mapping ? std::optional(mapping->start) : std::nullopt;
}

}  // namespace forksight::proc
