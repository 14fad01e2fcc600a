#include "inspect/core_subject.hpp"

#include <fmt/core.h>
#include <linux/futex.h>

#include <algorithm>

#include "image/core.hpp"
#include "image/stacks.hpp"
#include "inspect/lost_pthreads.hpp"
#include "inspect/pthreads.hpp"
#include "inspect/stuck_call.hpp"
#include "watch/wait_class.hpp"

namespace forksight::inspect {
namespace {

watch::ThreadSample sample_of(const image::Thread& thread) {
  watch::ThreadSample sample;
  sample.tid = thread.tid;
  sample.status.name = thread.name;
  sample.status.state = thread.has_ended ? 'Z' : thread.state;
  if (thread.call) sample.call = *thread.call;
  return sample;
}

// A core does not say which mappings are shared: these are private, by what they are. What the program or a library
// has of its file is, too: its data are copied when they are written to.
bool is_private(const image::Image& image, std::uint64_t word) {
  const watch::Mapping* const mapping = image.mapping_of(word);
  if (mapping == nullptr || mapping->shared || !mapping->writable) return false;
  return mapping->path.empty() || mapping->path.starts_with('[') ||
         std::ranges::find(image.modules, mapping->path, &symbols::Module::path) != image.modules.end();
}

// By the rules of watch/proof.hpp, as far as memory and registers go.
bool is_asleep_for_good(const image::Image& image, const image::Thread& thread) {
  const watch::WaitTarget target = watch::classify(sample_of(thread));
  if (target.kind == watch::WaitClass::kEnded) return true;
  if (target.kind == watch::WaitClass::kPlainFutex && !is_private(image, target.word)) return false;
  if (target.kind != watch::WaitClass::kPlainFutex && target.kind != watch::WaitClass::kPrivateFutex) return false;
  if (!target.priority_inherit) return true;
  // An owner of another process wakes by its end.
  const auto value = image.memory->value<std::uint32_t>(target.word);
  return value && std::ranges::any_of(image.threads, [&](const image::Thread& other) {
           return other.tid == static_cast<std::int32_t>(*value & FUTEX_TID_MASK);
         });
}

// One sample proves no spin; but in a forked process of one thread nobody is left who could end it.
bool is_spinning(const Subject& subject) {
  const image::Image& image = subject.image;
  if (subject.is_forked != true || image.threads.size() != 1 || image.threads.front().state != 'R') return false;
  if (image.signal != 0) return false;
  image::Stacks stacks(image);
  const image::Thread& thread = image.threads.front();
  const StuckCall call = recognise(thread, stacks.of(thread), make_callee_of(image, stacks.symbols()));
  return call.kind == CallKind::kSpinlock || call.kind == CallKind::kParallel;
}

Subject make_subject(image::Image image) {
  Subject subject;
  subject.image = std::move(image);
  const image::Image& from = subject.image;
  {
    image::Stacks stacks(from);
    subject.is_forked = was_forked(from, stacks.symbols());
  }
  for (const image::Thread& thread : from.threads) {
    watch::WaitFacts facts;
    const watch::WaitTarget target = watch::classify(sample_of(thread));
    if (is_private(from, target.word)) facts.mapping = watch::WordMapping::kPrivate;
    subject.waits.push_back(watch::describe_wait(sample_of(thread), &facts));
  }
  const auto sleeps = [&](const image::Thread& thread) { return is_asleep_for_good(from, thread); };
  if (std::ranges::all_of(from.threads, sleeps)) {
    // Whether there is a handler, only the kernel knew.
    subject.liveness = model::Liveness::kDeadButForSignal;
  } else if (is_spinning(subject)) {
    subject.liveness = model::Liveness::kSpinning;
  } else {
    subject.liveness = model::Liveness::kAwake;
  }
  return subject;
}

void add_limits(image::Image& image, const std::string& core, bool has_parent) {
  image.limits.push_back(fmt::format(
      "{}: a core does not tell of signal handlers, descriptors and other processes: that a handler could end the wait "
      "is "
      "not ruled out, who waits for this process is not known{}",
      core, has_parent ? "" : "; of the process that forked it only what it left in memory is known (--parent-core)"));
  if (image.signal != 0) {
    image.limits.push_back(
        fmt::format("{}: was dumped for signal {}, which thread {} got: a hang is looked for, not a "
                    "crash",
                    core, image.signal, image.signal_tid));
  }
}

}  // namespace

Result<std::vector<Subject>> open_core_subjects(const std::string& core, const CoreSubjectOptions& options) {
  auto image = image::open_core(core, {options.exe});
  if (!image) return Error{image.error()};
  std::vector<Subject> subjects;
  subjects.push_back(make_subject(std::move(image).value()));
  if (!options.parent_core.empty()) {
    auto parent = image::open_core(options.parent_core, {options.exe});
    if (!parent) return Error{parent.error()};
    if (!is_same_layout(subjects[0].image, parent.value())) {
      return Error{
          fmt::format("{}: is no core of the process that forked that of {}: it is of another program, or mapped "
                      "elsewhere",
                      options.parent_core, core)};
    }
    subjects[0].parent = 1;
    // By _Fork() or clone(), which are not counted.
    if (subjects[0].is_forked == false) subjects[0].is_forked.reset();
    subjects.push_back(make_subject(std::move(parent).value()));
  }
  add_limits(subjects[0].image, core, subjects.size() > 1);
  add_absent_parents(subjects);
  return subjects;
}

}  // namespace forksight::inspect
