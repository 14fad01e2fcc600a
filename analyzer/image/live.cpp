#include "image/live.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <unordered_map>

#include "image/live_memory.hpp"
#include "image/modules.hpp"
#include "image/refusal.hpp"
#include "image/stop.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::image {
namespace {

constexpr std::size_t kMaxMapsBytes = 64U << 20U;

std::vector<proc::Mapping> read_mappings(std::int32_t tid) {
  std::vector<proc::Mapping> mappings;
  const proc::ReadText maps = proc::read_file(proc::proc_path(tid, "maps"), kMaxMapsBytes);
  for (std::size_t start = 0; start < maps.text.size();) {
    const std::size_t end = maps.text.find('\n', start);
    if (end == std::string::npos) break;  // the last line was cut
    auto mapping = proc::parse_mapping(std::string_view(maps.text).substr(start, end - start));
    start = end + 1;
    if (!mapping || mapping->start >= mapping->end) continue;
    // If the process maps something while the text is read, the new mapping may come out of order.
    if (!mappings.empty() && mapping->start < mappings.back().end) continue;
    mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

Thread make_thread(const proc::ThreadSample& sample) {
  Thread thread;
  thread.tid = sample.tid;
  thread.own_tid = sample.status.own_tid;
  thread.name = sample.status.name;
  thread.state = sample.status.state;
  thread.has_ended = sample.ended();
  if (thread.has_ended || sample.call.running) return thread;
  if (sample.call.in_syscall) thread.call = sample.call;
  if (sample.call.sp == 0 || sample.call.pc == 0) return thread;
  symbols::Registers registers{};
  registers[symbols::kRsp] = sample.call.sp;
  registers[symbols::kReturnAddress] = sample.call.pc;
  thread.registers = registers;
  return thread;
}

// Adds all threads to the image, the main thread first. `stoppable` gets the threads that forksight may stop. No other
// process traces these threads, and may_be_stopped() is true for them.
void add_threads(Image& image, const proc::SampledThreads& sampled, std::vector<std::int32_t>& stoppable) {
  std::int32_t tracer = 0;
  std::size_t stopped = 0;
  for (const auto& sample : sampled.threads) {
    if (!sample) continue;  // the thread has just ended
    image.threads.push_back(make_thread(*sample));
    if (sample->status.tracer != 0) tracer = sample->status.tracer;
    if (sample->status.state == 'T' || sample->status.state == 't') ++stopped;
    if (sample->status.tracer == 0 && may_be_stopped(image.threads.back())) stoppable.push_back(sample->tid);
  }
  std::stable_partition(image.threads.begin(), image.threads.end(),
                        [&](const Thread& thread) { return thread.tid == image.pid; });
  if (sampled.is_refused) image.limits.push_back("the kernel does not show what some threads are blocked in");
  if (tracer != 0) {
    image.limits.push_back(
        fmt::format("process {} is traced by {}, so forksight cannot stop its threads: fewer registers are known",
                    image.pid, pid_and_name(tracer)));
  } else if (stopped > 0) {
    image.limits.push_back(
        fmt::format("{} thread{} of process {} {} stopped by a signal and must stay stopped: fewer registers are known",
                    stopped, stopped == 1 ? "" : "s", image.pid, stopped == 1 ? "is" : "are"));
  }
}

// Returns any thread that has not ended, or 0 if there is none. The main thread may have ended before other threads.
// Then its files in /proc show neither memory nor mappings.
std::int32_t find_live_thread(std::int32_t pid) {
  for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid, "task")).numbers) {
    const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid, tid, "stat")).text);
    if (stat && stat->state != 'Z' && stat->state != 'X') return tid;
  }
  return 0;
}

std::string gone(std::int32_t pid) { return fmt::format("process {}: ended while forksight examined it", pid); }

}  // namespace

Result<Image> open_live(std::int32_t pid, const LiveOptions& options) {
  if (auto obstacle = find_obstacle(pid)) return Error{std::move(*obstacle)};
  const auto stat = proc::read_stat(pid);
  const std::int32_t guide = find_live_thread(pid);
  if (!stat || guide == 0) return Error{gone(pid)};
  const auto memory = LiveMemory::open(guide);
  if (!memory) return Error{errno == ENOENT || errno == ESRCH ? gone(pid) : explain_refusal(pid)};
  const std::optional<bool> is_known_code = proc::runs_x86_64(guide);
  if (!is_known_code) {
    const std::string failure = proc::find_resource_failure();
    if (failure.empty()) return Error{gone(pid)};
    return Error{fmt::format("process {}: neither its program nor its mappings can be read: {}", pid, failure)};
  }
  if (!*is_known_code) {
    return Error{fmt::format("process {}: its program is not x86-64 code; forksight reads only x86-64", pid)};
  }

  Image image;
  image.pid = pid;
  image.ppid = stat->ppid;
  image.start_ticks = stat->start_ticks;
  image.exe = proc::read_exe(guide);
  image.cmdline = proc::read_cmdline(guide);
  image.memory = memory;
  image.mappings = read_mappings(guide);
  const files::Owner owner = proc::owner_of(guide);
  image.modules = find_modules(
      owner, *memory, image.mappings,
      [&](const proc::Mapping& mapping) {
        const std::string path = without_deleted(mapping.path);
        std::vector<FilePlace> places;
        if (path == image.exe) places.push_back({proc::proc_path(guide, "exe"), owner});
        places.push_back({proc::proc_path(guide, "root") + path, owner});
        places.push_back(
            {proc::proc_path(guide, fmt::format("map_files/{:x}-{:x}", mapping.start, mapping.end)), owner});
        return places;
      },
      image.limits);
  mark_program(image.modules, image.exe);

  image.libc = find_libc(image.modules, image.exe);
  if (std::string limit = libc_limit(image.libc); !limit.empty()) {
    image.limits.push_back(fmt::format("process {}: {}", image.pid, limit));
  }
  std::vector<std::int32_t> stoppable;
  const auto list = [&] { return proc::list_numbers(proc::proc_path(pid, "task")).numbers; };
  add_threads(image, options.threads ? *options.threads : proc::sample_threads(pid, list()), stoppable);
  if (!proc::is_same_process({pid, image.start_ticks}) || image.threads.empty()) return Error{gone(pid)};
  if (!options.stop) return image;
  if (options.stop_only) {
    std::unordered_map<std::int32_t, const Thread*> threads;
    for (const Thread& thread : image.threads) threads.try_emplace(thread.tid, &thread);
    std::erase_if(stoppable, [&](std::int32_t tid) {
      const auto thread = threads.find(tid);
      return thread == threads.end() || !options.stop_only(*thread->second);
    });
  }
  stop_and_read_registers(image, stoppable);
  return image;
}

}  // namespace forksight::image
