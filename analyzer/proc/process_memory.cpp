#include "proc/process_memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "files/descriptor.hpp"
#include "files/opener.hpp"

namespace forksight::proc {
namespace {

std::mutex g_mutex;
std::unordered_map<std::int32_t, std::shared_ptr<const files::Descriptor>> g_opened_ahead;  // by tid

int copy_of_opened(std::int32_t tid) {
  const std::scoped_lock lock(g_mutex);
  const auto opened = g_opened_ahead.find(tid);
  return opened == g_opened_ahead.end() ? -1 : ::fcntl(opened->second->get(), F_DUPFD_CLOEXEC, 0);
}

// A batch uses a descriptor for each process. So a batch may use only a part of the descriptors that this process may
// have.
std::size_t size_of_batch() {
  constexpr std::size_t kLargestBatch = 64;
  constexpr std::size_t kPart = 8;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::clamp<std::size_t>(limit.rlim_cur / kPart, 1, kLargestBatch)
                                                 : 1;
}

}  // namespace

int open_memory(std::int32_t tid) {
  const int fd = copy_of_opened(tid);
  return fd >= 0 ? fd : open_entry(proc_path(tid, "mem"));
}

MemoriesAhead::MemoriesAhead(std::vector<ThreadsOf> processes)
    : processes_(std::move(processes)), batch_(size_of_batch()) {}
MemoriesAhead::~MemoriesAhead() { close(); }

void MemoriesAhead::reach(std::size_t index) {
  if (index < end_ || index >= processes_.size() || !files::has_opener()) return;
  close();
  end_ = std::min(index + batch_, processes_.size());
  open(std::span(std::as_const(processes_)).subspan(index, end_ - index));
}

void MemoriesAhead::open(std::span<const ThreadsOf> batch) {
  std::vector<files::Request> requests;
  std::vector<const ThreadsOf*> wanted;
  for (const ThreadsOf& process : batch) {
    if (process.tids.empty()) continue;
    requests.push_back({.wish = files::Wish::kEntry, .path = proc_path(process.tids.front(), "mem")});
    wanted.push_back(&process);
  }
  std::vector<files::Reply> replies = files::ask_opener(requests);
  const std::scoped_lock lock(g_mutex);
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (!replies[at].file) continue;
    const auto opened = std::make_shared<const files::Descriptor>(std::move(replies[at].file));
    for (const std::int32_t tid : wanted[at]->tids) {
      if (g_opened_ahead.emplace(tid, opened).second) tids_.push_back(tid);
    }
  }
}

void MemoriesAhead::close() {
  const std::scoped_lock lock(g_mutex);
  for (const std::int32_t tid : tids_) g_opened_ahead.erase(tid);
  tids_.clear();
}

ProcessMemory::ProcessMemory(std::int32_t tid) : fd_(open_memory(tid)), dead_(tid) {}

ProcessMemory::~ProcessMemory() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::uint64_t> ProcessMemory::read(std::uint64_t address, std::size_t size) const {
  std::uint64_t value = 0;
  if (size > sizeof value) return std::nullopt;
  const bool good = read(address, std::span(reinterpret_cast<std::byte*>(&value), size));
  return good ? std::optional(value) : std::nullopt;
}

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  return fd_ >= 0 && dead_.clip(address, bytes.size()) == bytes.size() &&
         ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(bytes.size());
}

std::optional<std::string> ProcessMemory::read_c_string(std::uint64_t address) const {
  std::string text;
  for (char byte = 0; text.size() < 4096; text.push_back(byte)) {
    if (!read(address + text.size(), std::as_writable_bytes(std::span(&byte, 1)))) return std::nullopt;
    if (byte == 0) return text;
  }
  return std::nullopt;
}

}  // namespace forksight::proc
