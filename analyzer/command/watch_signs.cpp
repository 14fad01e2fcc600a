#include "command/watch_signs.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "diagnose/words.hpp"
#include "files/error_output.hpp"
#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

using namespace std::chrono_literals;

// Returns the processor time as text: "0.3 s".
std::string as_seconds(std::uint64_t ticks) {
  const auto tick = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  return fmt::format("{:.1f} s", static_cast<double>(ticks) / tick);
}

}  // namespace

WatchSigns::WatchSigns(std::string what) : what_(std::move(what)) {}

void WatchSigns::tell(const inspect::LiveTree& tree) {
  const auto now = Clock::now();
  if (now < due_) return;
  Used used;
  std::uint64_t spent = 0;  // since the last line
  for (const inspect::Subject& subject : tree.subjects) {
    const auto stat = proc::read_stat(subject.image.pid);
    if (!stat) continue;
    const std::pair key{stat->pid, stat->start_ticks};
    const auto before = used_.find(key);
    spent += stat->cpu_ticks - std::min(stat->cpu_ticks, before == used_.end() ? 0 : before->second);
    used.emplace(key, stat->cpu_ticks);
  }
  const auto watched =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now - start_).count());
  const auto members = std::ranges::count(tree.subjects, true, &inspect::Subject::is_asked_about);
  std::string line = fmt::format("forksight: watching {}: {} with {}, no hang found", what_,
                                 words::count(static_cast<std::size_t>(members), "process", "processes"),
                                 words::count(tree.threads, "thread", "threads"));
  if (!is_first_)
    line += fmt::format("; watched for {}, {} of processor time since the last look", words::duration(watched),
                        as_seconds(spent));
  if (line_.is_on_terminal()) {
    line_.show(line);
  } else {
    files::write_error(line + '\n');
  }
  used_ = std::move(used);
  due_ = line_.is_on_terminal() ? now : now + 60s;
  is_first_ = false;
}

}  // namespace forksight
