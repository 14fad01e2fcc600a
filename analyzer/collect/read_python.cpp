#include "collect/read_python.hpp"

#include "collect/python_text.hpp"
#include "model/python_frames.hpp"

namespace forksight::collect {

using trace::RecordType;

void PythonReader::read_python_stacks(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::PythonStacksRecord>();
  const auto tail = record.tail<trace::PythonStacksRecord>().first(fixed.bytes);
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const model::PythonId id = model_.python.size();
  model_.python.push_back(parse_python_stacks(text, fixed.writer));
  trace_.bind(record, id);
  if (fixed.moment == trace::PythonMoment::kRequest) model_.processes[trace_.process_of(record)].python = id;
  if (fixed.moment == trace::PythonMoment::kTouch) {
    if (trace_.is_of_type(fixed.touch, RecordType::kShareUse)) {
      const auto use = trace_.find(fixed.touch, RecordType::kShareUse);
      python_of_use_[{use->fork, use->index}] = id;
    } else if (const auto touch = trace_.find(fixed.touch, RecordType::kTouch)) {
      python_of_touch_[touch->index] = id;
    }
  }
}

void PythonReader::read_python_at_fork(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::PythonAtForkRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto stacks = trace_.find(fixed.stacks, RecordType::kPythonStacks);
  if (fork && stacks) model_.forks[fork->index].python = stacks->index;
}

void PythonReader::read_python_signal(const TraceRecord& record) {
  constexpr std::uint32_t kFirstRealTime = 34;
  constexpr std::uint32_t kLastRealTime = 64;
  const auto fixed = record.fixed<trace::PythonSignalRecord>();
  if (fixed.signal < kFirstRealTime || fixed.signal > kLastRealTime) return;
  model_.processes[trace_.process_of(record)].python_signal = static_cast<int>(fixed.signal);
}

void PythonReader::join_python() {
  for (model::ForkId id = trace_.first_fork(); id < model_.forks.size(); ++id) {
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
