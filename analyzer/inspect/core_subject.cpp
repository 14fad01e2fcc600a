#include "inspect/core_subject.hpp"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "image/core.hpp"
#include "image/stacks.hpp"
#include "inspect/core_waits.hpp"
#include "inspect/lost_pthreads.hpp"
#include "inspect/pthreads.hpp"
#include "inspect/stuck_call.hpp"

namespace forksight::inspect {
namespace {

// True if the thread is in sched_yield(), called by OpenBLAS. OpenBLAS calls sched_yield() only while it waits for
// another thread.
bool is_yielding_in_blas(const model::Stack& stack, const StuckCall& call) {
  return !stack.frames.empty() && is_libc(stack.frames.front().module) &&
         public_name(stack.frames.front().function) == "sched_yield" && !call.stack.frames.empty() &&
         model::find_owner_of_library(call.stack.frames.front().module) == model::Owner::kOpenblas;
}

// True if the process is forked, and its only thread waits in a spinlock, in a parallel region or in OpenBLAS. A core
// is only one sample. So it does not prove that the thread spins for ever. But no other thread exists that could end
// the wait.
bool is_spinning(const Subject& subject) {
  const image::Image& image = subject.image;
  if (subject.is_forked != true || image.threads.size() != 1 || image.threads.front().state != 'R') return false;
  if (image.signal != 0) return false;
  image::Stacks stacks(image);
  const image::Thread& thread = image.threads.front();
  const model::Stack stack = stacks.of(thread);
  const StuckCall call = recognise(thread, stack, make_callee_of(image, stacks.symbols()), image.libc);
  return call.kind == CallKind::kSpinlock || call.kind == CallKind::kParallel || is_yielding_in_blas(stack, call);
}

// True if the memory still has tids of the parent. Then vfork() or the bare system call made the process, because
// fork() would have replaced the tid of the thread that forked, and erased the tids of the other threads. So this
// memory may belong to the parent.
bool has_number_of_parent(const image::Image& image) {
  const image::Thread& thread = image.threads.front();
  if (image.threads.size() != 1 || thread.own_tid == 0) return false;
  return thread.own_tid == image.ppid || find_lost_pthreads(image).bypassed;
}

// The functions of glibc that set a signal handler.
constexpr std::string_view kHandlerSetters[] = {"sigaction",   "__sigaction",   "signal", "bsd_signal", "ssignal",
                                                "sysv_signal", "__sysv_signal", "sigset", "sigvec"};

Subject make_subject(image::Image image) {
  Subject subject;
  subject.image = std::move(image);
  const image::Image& from = subject.image;
  {
    image::Stacks stacks(from);
    const auto forks = count_forks(from, stacks.symbols());
    if (forks) subject.is_forked = *forks > 0;
  }
  find_own_numbers(subject.image, subject.is_forked == true);
  if (has_number_of_parent(from)) {
    subject.is_forked = false;
    subject.image.threads.front().own_tid = 0;
  } else if (subject.is_forked != true && find_lost_pthreads(from).bypassed) {
    subject.is_forked = true;
  }
  // Only for the first process of a pid namespace, the core shows that its parent is in another namespace.
  subject.image.has_two_numberings = subject.is_forked == true && from.own_pid() == 1;
  CoreWaits waits = find_core_waits(from);
  subject.waits = std::move(waits.waits);
  if (waits.all_for_good) {
    // A core does not show whether a signal has a handler. So a handler might still end the waits.
    subject.liveness = model::Liveness::kDeadButForSignal;
    subject.sets_no_handlers = !image::Stacks(from).symbols().may_import(kHandlerSetters);
  } else if (is_spinning(subject)) {
    subject.liveness = model::Liveness::kSpinning;
  } else {
    subject.liveness = model::Liveness::kAwake;
  }
  return subject;
}

// Adds a sentence for each awaited lock in shared memory that names an owner, because the owner may be a thread of
// another process.
void add_shared_locks(const Subject& subject, const std::string& core, std::vector<std::string>& limits) {
  for (const model::Wait& wait : subject.waits) {
    const bool is_lock = wait.use != model::FutexUse::kUnknown && wait.use != model::FutexUse::kJoin;
    if (!is_lock || !wait.is_shared || wait.owner == 0) continue;
    const char* const kind = wait.use == model::FutexUse::kMutex ? "mutex" : "rwlock";
    const std::string where = wait.path.empty() ? std::string() : " in " + wait.path;
    limits.push_back(
        fmt::format("{}: thread {} waits for the {} at {:#x}{}, which names thread {} as its owner: other processes "
                    "may share the lock, and a core does not show whether this owner lives",
                    core, wait.tid, kind, wait.object, where, wait.owner));
  }
}

void add_limits(Subject& subject, const std::string& core, bool has_parent) {
  image::Image& image = subject.image;
  image.limits.push_back(fmt::format(
      "{}: a core does not show signal handlers, descriptors and other processes: a handler could end the wait, and it "
      "is not known who waits for this process{}",
      core,
      has_parent ? ""
                 : "; the state of its parent at the fork is known only from this memory: name a core of the parent "
                   "with --parent-core"));
  if (image.signal != 0) {
    image.limits.push_back(fmt::format(
        "{}: was dumped because of signal {} to thread {}: forksight looks for a hang, not for the cause of a crash",
        core, image.signal, image.signal_tid));
  }
  add_shared_locks(subject, core, image.limits);
}

}  // namespace

Result<std::vector<Subject>> open_core_subjects(const files::Reader& /*reader*/, const std::string& core,
                                                const CoreSubjectOptions& options) {
  auto image = image::open_core(core, {options.exe});
  if (!image) return Error{image.error()};
  std::vector<Subject> subjects;
  subjects.push_back(make_subject(std::move(image).value()));
  if (!options.parent_core.empty()) {
    auto parent = image::open_core(options.parent_core, {options.exe});
    if (!parent) return Error{parent.error()};
    if (!is_same_layout(subjects[0].image, parent.value())) {
      return Error{
          fmt::format("{}: is not a core of the process that forked the process of {}: it is of another program, or "
                      "mapped elsewhere",
                      options.parent_core, core)};
    }
    subjects[0].parent = 1;
    // glibc does not count forks by _Fork() and clone(). So the process may be a forked child although glibc counted no
    // fork.
    if (subjects[0].is_forked == false) subjects[0].is_forked.reset();
    subjects.push_back(make_subject(std::move(parent).value()));
  }
  add_limits(subjects[0], core, subjects.size() > 1);
  add_absent_parents(subjects);
  return subjects;
}

}  // namespace forksight::inspect
