// Reads /proc of other processes. Nothing here stops, traces or signals them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/descriptor.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

// Identifies a process: a pid can be used again, but not with the same start time.
struct ProcessKey {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

enum class ReadOutcome { kOk, kGone, kRefused };

struct ReadText {
  ReadOutcome outcome = ReadOutcome::kGone;
  std::string text;
  explicit operator bool() const { return outcome == ReadOutcome::kOk; }
};

// Reads at most `limit` bytes of a file. The rest is cut off.
ReadText read_file(const std::string& path, std::size_t limit = 64U << 10U);

std::optional<std::string> read_link(const std::string& path);

// Reads links of one folder of /proc. Takes less time than read_link(), because the kernel finds the folder only once.
class LinkReader {
 public:
  explicit LinkReader(std::string folder);
  // Sets `is_refused` to true if the kernel refuses to show where the link leads. A user may list the descriptors of a
  // process of the same user that has more rights, but may not read the links.
  std::optional<std::string> read(std::int32_t number, bool& is_refused) const;

 private:
  std::string folder_;
  files::Descriptor opened_;
};

struct ListedNumbers {
  ReadOutcome outcome = ReadOutcome::kGone;
  std::vector<std::int32_t> numbers;  // ascending
};
// Lists the entries of a directory whose names are numbers: processes, threads, descriptors.
ListedNumbers list_numbers(const std::string& folder);
// Finds out whether the links of a folder like /proc/PID/fd can be read. Stops at the first link that can be read,
// because a folder of descriptors may have a million entries.
ReadOutcome try_links(const std::string& folder);

struct Link {
  std::int32_t number = 0;
  std::string text;
};
struct ListedLinks {
  // kRefused also if the folder can be listed, but the kernel refuses to show where a link leads.
  ReadOutcome outcome = ReadOutcome::kGone;
  bool is_cut = false;      // links are missing, because goes_on() of read_links() returned false
  std::vector<Link> links;  // in ascending order of their numbers, without those that cannot be read
};
// Reads all links of a folder like /proc/PID/fd whose names are numbers.
ListedLinks read_links(const std::string& folder);
// Does the same for several folders. Passes the links of each folder to `use`, in the order of the folders. Reads no
// more links after `goes_on` has returned false. If another process must open the folders, this takes less time than one
// call for each folder.
void read_links(std::span<const std::string> folders, const std::function<bool()>& goes_on,
                const std::function<void(ListedLinks)>& use);

// Reads small files of /proc. If another process must open them, this takes less time than one call for each file.
std::vector<ReadText> read_files(std::span<const std::string> paths);
// Returns the type and the rights (st_mode) of links in /proc/PID/fd; 0: the link cannot be read.
std::vector<unsigned> read_link_modes(std::span<const std::string> paths);

struct ThreadsOf {
  std::int32_t pid = 0;
  std::vector<std::int32_t> tids;  // ascending
};
// Reads /proc/PID/task/TID/syscall of the threads of several processes. Returns, for each process, a text for each of
// its threads.
std::vector<std::vector<ReadText>> read_calls(std::span<const ThreadsOf> processes);

// True if /proc has this entry. This function does not call access(2), because access(2) checks the rights of the real
// user without capabilities. The mount option hidepid hides the processes of other users from such a user.
bool has_entry(const std::string& path);

// Opens a file of /proc for reading. On failure, returns -1 and sets errno.
int open_entry(const std::string& path);

// Returns a sentence about the first text, link or directory that could not be read because this process lacks a
// resource: descriptors or memory. "" if there was none. A failure of the device (EIO) also counts, and so does any
// failure to list /proc itself.
std::string find_resource_failure();
// Returns the number of failures until now, counted as in find_resource_failure(). If this number grows while something
// is examined, the examination may lack facts.
std::uint64_t count_failures();
// Returns the errno of the last failure that count_failures() has counted.
int last_failure();

std::string proc_path(std::int32_t pid, std::string_view entry);                    // /proc/PID/entry
std::string task_path(std::int32_t pid, std::int32_t tid, std::string_view entry);  // /proc/PID/task/TID/entry

std::optional<Stat> read_stat(std::int32_t pid);
// Reads the entry of one thread. For the entry of a process, the kernel adds up the times of all its threads. So to
// read the entry of a process for each of its threads would take time that grows with the square of their number.
std::optional<Stat> read_thread_stat(std::int32_t tid);
bool is_same_process(const ProcessKey& key);
// True if the process has ended, is a zombie, or is about to end.
bool is_ending(const ProcessKey& key);

std::string host_name();  // "" if the kernel does not show it
// Returns a thread whose entries in /proc show the memory and the files of the process. This is `pid`, unless the first
// thread has ended while others go on. Then the result is another thread, because the entries of the ended thread show
// neither. nullopt: no thread of the process lives.
std::optional<std::int32_t> find_thread_that_lives(std::int32_t pid);
// Does the same, but returns `pid` if no thread of the process lives.
std::int32_t find_living_thread(std::int32_t pid);
// True if no thread of the process lives. /proc still shows such a process until its parent has waited for it. The
// process has no memory and no descriptors. But if a user without privileges asks for its descriptors, the kernel
// refuses the request instead of showing an empty list.
bool has_ended(std::int32_t pid);
std::string read_exe(std::int32_t pid);  // "" if it cannot be read; without " (deleted)"
std::vector<std::string> read_cmdline(std::int32_t pid);
std::string read_environment(std::int32_t pid);  // as it was at the exec: "NAME=VALUE", each followed by a NUL
std::vector<std::int32_t> read_children(std::int32_t pid);  // the children of all of its threads

// Returns the address at which the shim is mapped. After an exec, the address is another one. So the address shows
// whether a process has called exec. 0: the shim is not mapped; nullopt: the memory map could not be read to the end.
std::optional<std::uint64_t> find_shim(std::int32_t pid);

}  // namespace forksight::proc
