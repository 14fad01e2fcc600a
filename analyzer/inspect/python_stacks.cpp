#include "inspect/python_stacks.hpp"

#include <algorithm>
#include <utility>

#include "inspect/python/python_locks.hpp"
#include "model/python_frames.hpp"

namespace forksight::inspect {
namespace {

// Null if the interpreter does not know the thread, or has no Python frames of it.
const PythonThread* find_python_thread(const image::Thread& thread, const std::vector<PythonThread>& threads) {
  const auto own = std::ranges::find_if(threads, [&](const PythonThread& one) {
    return thread.fs_base != 0 ? one.pointer == thread.fs_base : one.tid == thread.tid;
  });
  return own == threads.end() || own->stack.frames.empty() ? nullptr : &*own;
}

}  // namespace

void PythonStacks::read(std::size_t subject) {
  const image::Image& image = scene_.subjects[subject].image;
  const auto python = find_python(image, scene_.stacks_of(subject).symbols(), scene_.model.limits);
  if (!python) return;
  layouts_.emplace(subject, python->layout);
  auto threads = read_python_threads(image, *python, scene_.model.limits);
  if (threads.empty()) return;
  model::PythonThreads told;
  for (const PythonThread& thread : threads) {
    if (thread.stack.frames.empty()) continue;
    told.push_back({thread.pointer, thread.stack});
    const bool is_wanted = locals_ != nullptr && thread.tid != 0 && !thread.locals.empty();
    if (is_wanted) locals_->push_back({image.pid, thread.tid, thread.stack.frames.front(), thread.locals});
  }
  scene_.model.processes[subject].python = scene_.model.python.size();
  scene_.model.python.push_back(std::move(told));
  threads_.emplace(subject, std::move(threads));
}

void PythonStacks::splice_lines(std::size_t subject, model::Wait& wait) const {
  const auto threads = threads_.find(subject);
  if (threads == threads_.end()) return;
  const auto& all = scene_.subjects[subject].image.threads;
  const auto thread = std::ranges::find(all, wait.tid, &image::Thread::tid);
  const PythonThread* const own = thread == all.end() ? nullptr : find_python_thread(*thread, threads->second);
  if (own != nullptr) model::splice_python(wait.stack, own->stack);
}

// A thread that waits for a lock of CPython may sleep in a semaphore of its own (python_locks.hpp). The semaphore does
// not show what the thread waits for, but the entry that CPython keeps next to the semaphore shows this. So `call` gets
// the object from that entry.
void PythonStacks::note_parked_place(std::size_t subject, StuckCall& call) const {
  const auto layout = layouts_.find(subject);
  if (layout == layouts_.end() || call.kind != CallKind::kSemaphore) return;
  const auto park = find_python_park(*scene_.subjects[subject].image.memory, layout->second, call.object);
  if (!park) return;
  call.kind = park->is_lock ? CallKind::kPythonLock : CallKind::kFutex;
  call.object = park->address;
  call.owner_pointer = park->owner;
}

// A thread in Condition.wait and similar functions sleeps on a lock that it made for that wait. No other thread has
// ever held this lock. So this wait is not treated as a wait for a lock. Neither is a wait for a lock that serves as a
// signal.
void PythonStacks::note(std::size_t subject, const image::Thread& thread, StuckCall& call) const {
  note_parked_place(subject, call);
  const auto threads = threads_.find(subject);
  const PythonThread* const own = threads == threads_.end() ? nullptr : find_python_thread(thread, threads->second);
  if (own != nullptr) model::splice_python(call.stack, own->stack);
  const bool is_lock = call.kind == CallKind::kSemaphore || call.kind == CallKind::kPythonLock;
  const model::Frame* const innermost = own == nullptr ? nullptr : &own->stack.frames.front();
  const bool is_of_condition =
      innermost != nullptr && innermost->function == "wait" && innermost->file.ends_with("/threading.py");
  if (is_lock && (is_of_condition || model::is_python_signal(call.stack))) call.kind = CallKind::kFutex;
}

}  // namespace forksight::inspect
