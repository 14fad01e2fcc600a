#include "inspect/builder.hpp"

#include <algorithm>
#include <string_view>

#include "inspect/pthreads.hpp"
#include "model/python_frames.hpp"

namespace forksight::inspect {
namespace {

bool is_thread_start(const model::Frame& frame) {
  const std::string_view name = public_name(frame.function);
  return is_libc(frame.module) && (name == "start_thread" || name == "clone3" || name == "clone" || name.empty());
}

// What a thread was started with is the outermost frame that is not libc's own.
void find_start(const model::Stack& stack, model::Thread& thread) {
  if (thread.is_main || stack.cut) return;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (is_thread_start(*frame)) continue;
    thread.start_routine = frame->function;
    thread.start_library = frame->module;
    // What std::thread calls are templates around the program's own function, whose first frame of its own has a line.
    const auto body = std::find_if(frame, stack.frames.rend(), [](const model::Frame& one) {
      return !one.function.empty() && !one.function.starts_with("std::") &&
             one.function.find("std::thread::") == std::string::npos &&
             one.module.find("libstdc++") == std::string::npos;
    });
    if (body != stack.frames.rend()) thread.body = body->function;
    return;
  }
}

// Within one clock tick the numbers tell, which the kernel gives in ascending order.
bool began_after(const image::Thread& thread, const image::Image& child) {
  if (thread.start_ticks == 0 || child.start_ticks == 0) return false;
  if (thread.start_ticks != child.start_ticks) return thread.start_ticks > child.start_ticks;
  return thread.tid > child.pid;
}

model::PoolState state_of(const model::ThreadPool& pool) {
  switch (model::info_of(pool.owner).fate) {
    case model::OwnerFate::kRebuilds: return model::PoolState::kRebuilds;
    // Its handlers made it anew, on both sides; where they could not, the lock that they wait for says so.
    case model::OwnerFate::kHandles:
    case model::OwnerFate::kUnneeded: return model::PoolState::kHandled;
    case model::OwnerFate::kLost: break;
  }
  return model::PoolState::kLost;
}

}  // namespace

namespace {

// Of a condition variable or a semaphore the word is a member that no program names: "done.__data.__g_signals[0]";
// "done+0x28" without debug information (0x20 to 0x2c in glibc 2.25 and later).
std::string name_of_whole(const std::string& word) {
  const std::size_t offset = word.size() < 5 ? std::string::npos : word.find("+0x2", word.size() - 5);
  return word.substr(0, std::min(word.find(".__"), offset));
}

// Null if the interpreter does not know it, or nothing that it was doing.
const PythonThread* find_python_thread(const image::Thread& thread, const std::vector<PythonThread>& threads) {
  const auto own = std::ranges::find_if(threads, [&](const PythonThread& one) {
    return thread.fs_base != 0 ? one.pointer == thread.fs_base : one.tid == thread.tid;
  });
  return own == threads.end() || own->stack.frames.empty() ? nullptr : &*own;
}

}  // namespace

image::Stacks& Builder::stacks_of(std::size_t subject) {
  auto& stacks = stacks_[subject];
  if (!stacks) stacks = std::make_unique<image::Stacks>(subjects_[subject].image);
  return *stacks;
}

CalleeOf Builder::callee_of(std::size_t subject) {
  return make_callee_of(subjects_[subject].image, stacks_of(subject).symbols());
}

bool Builder::name_data(std::size_t subject, std::uint64_t address, std::string& name, std::string& module) {
  symbols::DataSymbol symbol;
  if (!stacks_of(subject).symbols().find_data(address, symbol)) return false;
  name = std::move(symbol.name);
  module = std::move(symbol.module);
  return true;
}

void Builder::add_process(std::size_t subject) {
  const Subject& from = subjects_[subject];
  model::Process process;
  process.pid = from.image.pid;
  process.ppid = from.image.ppid;
  process.start_ticks = from.image.start_ticks;
  process.exe = from.image.exe;
  process.cmdline = from.image.cmdline;
  process.is_core = from.image.is_core;
  process.liveness = from.liveness;
  process.stuck_for_ms = from.stuck_for_ms;
  process.waits = from.waits;
  process.waits_for = from.waits_for;
  process.waits_via = from.waits_via;
  process.unheard_signals = from.unheard_signals;
  process.ways_out = from.ways_out;
  model_.processes.push_back(std::move(process));
}

const ThreadFacts& Builder::facts_of(std::size_t subject, std::int32_t tid) const {
  static const ThreadFacts nothing;
  const auto at = facts_.find({subject, tid});
  return at == facts_.end() ? nothing : at->second;
}

// By itself, and not for another that is.
bool Builder::is_stuck(std::size_t subject) const {
  const model::Liveness liveness = subjects_[subject].liveness;
  return liveness != model::Liveness::kAwake && liveness != model::Liveness::kVictim;
}

// Is it stuck, or did it fork one that is: the stacks of others say nothing.
bool Builder::is_of_interest(std::size_t subject) const {
  if (is_stuck(subject)) return true;
  for (std::size_t other = 0; other < subjects_.size(); ++other) {
    if (subjects_[other].parent == subject && is_stuck(other) &&
        is_same_layout(subjects_[other].image, subjects_[subject].image)) {
      return true;
    }
  }
  return false;
}

// It is stuck beside others of its process that go on.
bool Builder::is_stuck_alone(std::size_t subject, std::int32_t tid) const {
  const Subject& own = subjects_[subject];
  return own.liveness == model::Liveness::kAwake &&
         std::ranges::any_of(own.waits, [&](const model::Wait& wait) { return wait.is_stuck && wait.tid == tid; });
}

void Builder::add_threads(std::size_t subject) {
  const auto is_partly_stuck = [&](const image::Thread& thread) { return is_stuck_alone(subject, thread.tid); };
  const bool is_whole = is_of_interest(subject);
  const bool has_stacks = is_whole || std::ranges::any_of(subjects_[subject].image.threads, is_partly_stuck);
  if (has_stacks) read_python(subject);
  const auto python = threads_of_python_.find(subject);
  for (const image::Thread& from : subjects_[subject].image.threads) {
    ThreadFacts facts;
    facts.id = model_.threads.size();
    model::Thread thread;
    thread.process = subject;
    thread.tid = from.tid;
    thread.name = from.name;
    thread.is_main = from.tid == subjects_[subject].image.pid;
    thread.pointer = from.fs_base;
    if ((is_whole || is_partly_stuck(from)) && from.registers && !from.has_ended) {
      facts.stack = stacks_of(subject).of(from);
      facts.call = recognise(from, facts.stack, callee_of(subject), subjects_[subject].image.libc);
      find_start(facts.stack, thread);
    }
    if (python != threads_of_python_.end()) note_python(from, python->second, facts.call);
    thread.owner = model::find_owner(thread);
    model_.threads.push_back(std::move(thread));
    facts_.emplace(std::pair(subject, from.tid), std::move(facts));
  }
  for (model::Wait& wait : model_.processes[subject].waits) {
    const auto facts = facts_.find({subject, wait.tid});
    if (facts != facts_.end()) wait.stack = facts->second.stack;
    if (python != threads_of_python_.end()) splice_lines(subject, python->second, wait);
    const bool is_word = wait.kind == model::WaitKind::kFutex && wait.use != model::FutexUse::kJoin;
    if (!has_stacks || !is_word || !name_data(subject, wait.object, wait.object_name, wait.object_module)) continue;
    if (wait.use == model::FutexUse::kUnknown) wait.object_name = name_of_whole(wait.object_name);
  }
}

void Builder::read_python(std::size_t subject) {
  const image::Image& image = subjects_[subject].image;
  auto threads = read_python_threads(image, stacks_of(subject).symbols(), model_.limits);
  if (threads.empty()) return;
  model::PythonThreads told;
  for (const PythonThread& thread : threads) {
    if (thread.stack.frames.empty()) continue;
    told.push_back({thread.pointer, thread.stack});
    const bool is_wanted = locals_ != nullptr && thread.tid != 0 && !thread.locals.empty();
    if (is_wanted) locals_->push_back({image.pid, thread.tid, thread.stack.frames.front(), thread.locals});
  }
  model_.processes[subject].python = model_.python.size();
  model_.python.push_back(std::move(told));
  threads_of_python_.emplace(subject, std::move(threads));
}

// Lines of Python where the interpreter's own frames are.
void Builder::splice_lines(std::size_t subject, const std::vector<PythonThread>& threads, model::Wait& wait) const {
  const auto& all = subjects_[subject].image.threads;
  const auto thread = std::ranges::find(all, wait.tid, &image::Thread::tid);
  const PythonThread* const own = thread == all.end() ? nullptr : find_python_thread(*thread, threads);
  if (own != nullptr) model::splice_python(wait.stack, own->stack);
}

// The same of a call. A thread that waits in Condition.wait and its like sleeps on
// a lock that it made for that, and that nobody else ever held.
void Builder::note_python(const image::Thread& thread, const std::vector<PythonThread>& threads, StuckCall& call) {
  const PythonThread* const own = find_python_thread(thread, threads);
  if (own == nullptr) return;
  const model::Frame& innermost = own->stack.frames.front();
  if (call.kind == CallKind::kSemaphore && innermost.function == "wait" && innermost.file.ends_with("/threading.py")) {
    call.kind = CallKind::kFutex;
  }
  model::splice_python(call.stack, own->stack);
}

model::ThreadId Builder::unknown_thread(model::ProcessId process) {
  model::Thread thread;
  thread.process = process;
  model_.threads.push_back(std::move(thread));
  return model_.threads.size() - 1;
}

// Threads that the parent has now stand for those that it had then.
std::optional<model::ForkId> Builder::add_fork(std::size_t child) {
  const Subject& subject = subjects_[child];
  if (!subject.parent || subject.is_forked == false || subject.is_in_vfork) return std::nullopt;
  const image::Image& parent = subjects_[*subject.parent].image;
  const bool is_absent = subjects_[*subject.parent].is_absent;
  if (!is_absent && !is_same_layout(subject.image, parent)) return std::nullopt;
  model::Fork fork;
  fork.process = *subject.parent;
  fork.child = child;
  fork.is_inferred = true;
  if (is_absent) add_threads_of_absent(fork);
  const std::int32_t known = find_forking_thread(subject.image, parent);
  const std::int32_t forking = known != 0 ? known : parent.pid;
  const bool is_there = is_absent || facts_.contains({*subject.parent, forking});
  if (!is_there) fork.forking_thread = unknown_thread(*subject.parent);
  for (const image::Thread& thread : parent.threads) {
    const model::ThreadId id = facts_of(*subject.parent, thread.tid).id;
    if (thread.tid == forking) {
      fork.forking_thread = id;
    } else if (!thread.has_ended && !began_after(thread, subject.image)) {
      fork.lost_threads.push_back(id);
    }
  }
  fork.python = model_.processes[fork.process].python;
  if (!is_absent) {
    note_signal_handler(fork);
    note_signal_waits(parent, fork);
  }
  add_pools(fork);
  model_.forks.push_back(std::move(fork));
  return model_.forks.size() - 1;
}

// The child goes on where fork() was called: what is below that on its stack is the same in the parent's thread, which
// may still be there. Only a signal handler is told in this way: it is what the child's stack begins with.
void Builder::note_signal_handler(model::Fork& fork) const {
  const auto& child = facts_of(*fork.child, model_.processes[*fork.child].pid).stack.frames;
  const auto& parent = facts_of(fork.process, model_.threads[fork.forking_thread].tid).stack.frames;
  const auto handler = std::ranges::find(child, model::kSignalFrame, &model::Frame::function);
  const auto same = std::ranges::find(parent, model::kSignalFrame, &model::Frame::function);
  if (handler == child.end() || same == parent.end() || child.end() - handler != parent.end() - same) return;
  const bool is_same =
      std::equal(handler + 1, child.end(), same + 1, parent.end(),
                 [](const auto& one, const auto& two) { return one.module == two.module && one.offset == two.offset; });
  if (!is_same) return;
  fork.stack.frames.assign(handler == child.begin() ? handler : handler - 1, child.end());
}

void Builder::add_pools(model::Fork& fork) {
  std::map<std::pair<model::Owner, std::string>, std::size_t> known;
  for (const model::ThreadId id : fork.lost_threads) {
    const model::Thread& thread = model_.threads[id];
    const std::string library(model::find_owning_library(thread));
    const auto [at, is_new] = known.try_emplace({thread.owner, library}, fork.thread_pools.size());
    if (is_new) fork.thread_pools.push_back({thread.owner, library, {}, 0, model::PoolState::kLost});
    model::ThreadPool& pool = fork.thread_pools[at->second];
    ++pool.before;
    pool.threads.push_back(id);
  }
  for (model::ThreadPool& pool : fork.thread_pools) pool.state = state_of(pool);
}

// What a process that goes on has on its stacks is its work.
void Builder::explain_all(std::size_t subject, std::optional<model::ForkId> fork) {
  if (!is_stuck(subject) || subjects_[subject].is_in_vfork) return;
  const std::size_t first_touch = model_.touches.size();
  for (const image::Thread& thread : subjects_[subject].image.threads) {
    if (fork) {
      explain(subject, thread, *fork);
    } else if (subjects_[subject].is_forked == false) {
      find_ended_owner(subject, thread);
    }
  }
  settle_touches(subject, first_touch);
}

void Builder::build() {
  for (std::size_t subject = 0; subject < subjects_.size(); ++subject) add_process(subject);
  for (std::size_t subject = 0; subject < subjects_.size(); ++subject) add_threads(subject);
  for (std::size_t subject = 0; subject < subjects_.size(); ++subject) {
    const auto fork = add_fork(subject);
    for (const image::Thread& thread : subjects_[subject].image.threads) {
      if (facts_of(subject, thread.tid).call.is_in_fork) {
        add_stuck_handler(subject, thread, fork);
      }
    }
    explain_all(subject, fork);
    for (const std::string& limit : subjects_[subject].image.limits) model_.limits.push_back(limit);
  }
  for (const auto& [subject, stacks] : stacks_) {
    for (const std::string& limit : stacks->symbols().limits()) {
      if (std::ranges::find(model_.limits, limit) == model_.limits.end()) model_.limits.push_back(limit);
    }
  }
}

model::Model build_model(const std::vector<Subject>& subjects, std::vector<PythonLocals>* locals) {
  model::Model model;
  Builder(subjects, model, locals).build();
  return model;
}

}  // namespace forksight::inspect
