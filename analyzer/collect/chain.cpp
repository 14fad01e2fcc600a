#include "collect/chain.hpp"

#include "collect/read_at.hpp"
#include "collect/record_size.hpp"

namespace forksight::collect {

using trace::RecordState;

namespace {

bool is_plausible(std::uint64_t word) {
  const std::uint32_t size = trace::word_size(word);
  const RecordState state = trace::word_state(word);
  return size >= sizeof(trace::RecordHeader) && size % trace::kRecordAlign == 0 && size <= trace::kMaxRecordBytes &&
         word >> 56U == 0 && (state == RecordState::kWriting || state == RecordState::kCommitted);
}

}  // namespace

std::optional<Link> Chain::next() {
  if (at_ > trace_.size() || trace_.size() - at_ < sizeof(trace::RecordHeader)) return std::nullopt;
  Link link{};
  link.record.offset = at_;
  link.word = read_at<std::uint64_t>(trace_, at_);
  if (link.word == 0) return std::nullopt;
  const std::uint32_t size = trace::word_size(link.word);
  link.kind = !is_plausible(link.word) ? LinkKind::kDamaged : LinkKind::kCut;
  if (link.kind == LinkKind::kDamaged || size > trace_.size() - at_) return link;
  TraceRecord& record = link.record;
  record.type = trace::word_type(link.word);
  record.pid = read_at<std::int32_t>(trace_, at_ + offsetof(trace::RecordHeader, pid));
  record.tid = read_at<std::int32_t>(trace_, at_ + offsetof(trace::RecordHeader, tid));
  record.time_ns = read_at<std::uint64_t>(trace_, at_ + offsetof(trace::RecordHeader, time_ns));
  record.payload = trace_.subspan(at_ + sizeof(trace::RecordHeader), size - sizeof(trace::RecordHeader));
  at_ += size;
  if (trace::word_state(link.word) == RecordState::kWriting) {
    link.kind = LinkKind::kUnfinished;
  } else {
    link.kind = has_whole_payload(record.type, record.payload) ? LinkKind::kWhole : LinkKind::kShort;
  }
  return link;
}

}  // namespace forksight::collect
