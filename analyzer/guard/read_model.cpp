#include "guard/read_model.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "guard/child.hpp"
#include "guard/pack.hpp"
#include "proc/reader_rights.hpp"

namespace forksight::guard {
namespace {

constexpr char kHasModel = 'm';
constexpr char kHasError = 'e';

bool has_right_to_trace() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & (1U << CAP_SYS_PTRACE)) != 0;
}

// If Yama's ptrace_scope is 1 or more, a process without CAP_SYS_PTRACE may examine only its descendants
// (Documentation/admin-guide/LSM/Yama.rst of Linux).
bool may_only_ancestors_look() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  return file >> scope && scope > 0 && !has_right_to_trace();
}

std::string answer_of(const Result<model::Model>& model) {
  return model ? kHasModel + pack(model.value()) : kHasError + model.error();
}

}  // namespace

ModelRead read_model(const ReadModel& work, const ReadOptions& options) {
  std::optional<Result<model::Model>> here;
  const Work in_place = [&](const files::Reader& reader) {
    here = work(reader);
    return 0;
  };
  if (options.needs_ancestor && may_only_ancestors_look()) {
    run_here(in_place);
    return {std::move(*here)};
  }
  const Work in_child = [&](const files::Reader& reader) {
    const std::string text = answer_of(work(reader));
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
  };
  const Answer answer = run_child(in_child, {.next_signal = {},
                                             .in_child = {},
                                             .on_output = {},
                                             .limit = options.limit,
                                             .most_output = options.most_bytes,
                                             .examines_processes = options.needs_ancestor});
  if (!answer.has_child && proc::may_give_up_user()) {
    return {Error{describe_failure(answer)}, true};
  }
  if (!answer.has_child) {
    run_here(in_place);
    return {std::move(*here)};
  }
  if (std::string failure = describe_failure(answer); !failure.empty()) return {Error{std::move(failure)}, true};
  const std::string_view out = answer.out;
  const bool has_ended_well = WIFEXITED(answer.status) && WEXITSTATUS(answer.status) == 0;
  if (has_ended_well && out.starts_with(kHasError)) return {Error{std::string(out.substr(1))}};
  if (has_ended_well && out.starts_with(kHasModel)) {
    if (auto model = unpack(out.substr(1))) return {std::move(*model)};
  }
  return {Error{"the process that reads files and memory for forksight gave no valid answer"}, true};
}

}  // namespace forksight::guard
