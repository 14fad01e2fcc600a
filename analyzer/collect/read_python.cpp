// Python stacks: parsed when their record is met, joined with the native threads and stacks at the end.
#include "collect/python_text.hpp"
#include "collect/trace_reader.hpp"
#include "model/python_frames.hpp"

namespace forksight::collect {

using trace::RecordType;

void TraceReader::read_python_stacks(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::PythonStacksRecord>();
  const auto tail = record.tail<trace::PythonStacksRecord>().first(fixed.bytes);
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const model::PythonId id = model_.python.size();
  model_.python.push_back(parse_python_stacks(text, fixed.writer));
  become(record, id);
  if (fixed.moment == trace::PythonMoment::kRequest) model_.processes[process_of(record)].python = id;
  if (fixed.moment == trace::PythonMoment::kTouch) {
    const auto at = targets_.find(fixed.touch);
    if (at != targets_.end() && at->second.type == RecordType::kShareUse) {
      python_of_use_[{at->second.fork, at->second.index}] = id;
    } else if (const auto touch = find(fixed.touch, RecordType::kTouch)) {
      python_of_touch_[touch->index] = id;
    }
  }
}

void TraceReader::read_python_at_fork(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::PythonAtForkRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  const auto stacks = find(fixed.stacks, RecordType::kPythonStacks);
  if (fork && stacks) model_.forks[fork->index].python = stacks->index;
}

void TraceReader::read_python_signal(const TraceRecord& record) {
  constexpr std::uint32_t kFirstRealTime = 34;
  constexpr std::uint32_t kLastRealTime = 64;
  const auto fixed = record.fixed<trace::PythonSignalRecord>();
  if (fixed.signal < kFirstRealTime || fixed.signal > kLastRealTime) return;
  model_.processes[process_of(record)].python_signal = static_cast<int>(fixed.signal);
}

void TraceReader::join_python() {
  for (model::ForkId id = first_fork_; id < model_.forks.size(); ++id) {
    model::Fork& fork = model_.forks[id];
    if (!fork.python) continue;
    const std::uint64_t own = model_.threads[fork.forking_thread].pointer;
    for (const model::PythonThread& thread : model_.python[*fork.python]) {
      if (own != 0 && thread.pointer == own) model::splice_python(fork.stack, thread.stack);
    }
  }
  for (const auto& [touch, id] : python_of_touch_) {
    if (!model_.python[id].empty()) model::splice_python(model_.touches[touch].stack, model_.python[id].front().stack);
  }
  for (const auto& [use, id] : python_of_use_) {
    const auto& [share, index] = use;
    if (model_.python[id].empty()) continue;
    model::splice_python(model_.shares[share].uses[index].stack, model_.python[id].front().stack);
  }
}

}  // namespace forksight::collect
