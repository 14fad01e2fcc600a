#include "collect/read_notes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collect/trace_words.hpp"

namespace forksight::collect {
namespace {

constexpr std::size_t kMostNotes = 64;  // kinds of notes in one file

}  // namespace

void NoteReader::read_note(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::NoteRecord>();
  if (fixed.code == trace::NoteCode::kCudaIpcFull) model_.processes[trace_.process_of(record)].has_gaps = true;
  if (notes_.size() == kMostNotes && !notes_.contains(fixed.code)) {
    ++notes_left_out_;
    return;
  }
  Noted& noted = notes_[fixed.code];
  noted.most = std::max(noted.most, fixed.value);
  noted.pids.insert(record.pid);
}

// Makes one sentence for each kind of note. A process writes the same note at each fork, and so do its children.
void NoteReader::tell_notes() {
  for (const auto& [code, noted] : notes_) {
    const std::string who = noted.pids.size() == 1
                                ? fmt::format("process {}", *noted.pids.begin())
                                : fmt::format("{} processes, at most per process", noted.pids.size());
    model_.limits.push_back(fmt::format("{}: {}: {}", trace_.file().name(), who, describe_note(code, noted.most)));
  }
}

}  // namespace forksight::collect
