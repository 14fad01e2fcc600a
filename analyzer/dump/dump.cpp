#include "dump/dump.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collect/chain.hpp"
#include "collect/record_size.hpp"
#include "dump/fields.hpp"
#include "dump/text.hpp"
#include "render/printable.hpp"

namespace forksight::dump {

namespace {

using collect::Chain;
using collect::Link;
using collect::LinkKind;

class Dump {
 public:
  Dump(const collect::TraceFile& file, Format format, const std::function<bool(std::string_view)>& write)
      : file_(file), bytes_(file.bytes()), format_(format), write_(write), chain_(bytes_, trace::kHeaderBytes) {}

  std::optional<Totals> run() {
    if (bytes_.empty()) {
      for (const std::string& sentence : file_.limits()) say_bad(0, sentence);
    } else {
      show(Json{{"offset", hex(0)},
                {"record", "header"},
                {"bytes", trace::kHeaderBytes},
                {"fields", read_struct("TraceHeader", bytes_.first(trace::kHeaderBytes))}});
      while (!has_stopped_ && show_next()) {
      }
    }
    show(Json{
        {"offset", hex(bytes_.empty() ? 0 : chain_.at())},
        {"record", "end"},
        {"says", fmt::format("{} records, {} unfinished, {} bad", totals_.records, totals_.unfinished, totals_.bad)}});
    if (!has_stopped_ && !pending_.empty()) flush();
    if (has_stopped_) return std::nullopt;
    return totals_;
  }

 private:
  void flush() {
    has_stopped_ = has_stopped_ || !write_(pending_);
    pending_.clear();
  }

  void show(const Json& line) {
    constexpr std::size_t kPiece = 64 * 1024;
    pending_ += format_ == Format::kText ? text_of_line(line, file_.info().monotonic_ns)
                                         : render::escape_json_controls(line.dump()) + '\n';
    if (pending_.size() >= kPiece) flush();
  }

  void say_bad(std::uint64_t offset, const std::string& what) {
    ++totals_.bad;
    show(Json{{"offset", hex(offset)}, {"record", "BAD"}, {"says", what}});
  }

  // Shows the next record, or the place where the chain breaks. Returns false if nothing follows.
  bool show_next() {
    const std::uint64_t at = chain_.at();
    const std::optional<Link> link = chain_.next();
    if (!link) return show_end(at);
    if (link->kind == LinkKind::kDamaged) {
      return pass(at, fmt::format("begins with {:#018x}, which no writer writes", link->word));
    }
    if (link->kind == LinkKind::kCut) {
      return pass(at, fmt::format("is {} bytes long by its first word, and {} bytes of the file are left",
                                  trace::word_size(link->word), bytes_.size() - at));
    }
    show_record(*link);
    return true;
  }

  bool show_end(std::uint64_t at) {
    const auto rest = bytes_.subspan(std::min<std::uint64_t>(at, bytes_.size()));
    const bool is_zero = std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; });
    if (!is_zero && rest.size() >= sizeof(trace::RecordHeader))
      return pass(at, "is zero, but bytes other than zero follow");
    if (!is_zero) say_bad(at, fmt::format("has {} bytes, too few for a record", rest.size()));
    std::uint64_t tail = 0;
    std::memcpy(&tail, bytes_.data() + offsetof(trace::TraceHeader, tail), sizeof tail);
    if (is_zero && tail > at) say_bad(at, "no record, although the header says that records go on to " + hex(tail));
    return false;
  }

  // Goes on at the next possible record, and reports how many bytes it skipped.
  bool pass(std::uint64_t at, const std::string& what) {
    const std::optional<std::uint64_t> next = find_record(at + trace::kRecordAlign);
    say_bad(at, what + (next ? fmt::format("; {} bytes passed", *next - at) : "; no record follows"));
    if (next) chain_.go_on_at(*next);
    return next.has_value();
  }

  // Returns the first offset at or after `from` with a complete record of a known type. The chain must not break right
  // behind that record: another record follows, or the chain ends.
  std::optional<std::uint64_t> find_record(std::uint64_t from) const {
    for (std::uint64_t at = from; at + sizeof(trace::RecordHeader) <= bytes_.size(); at += trace::kRecordAlign) {
      Chain probe(bytes_, at);
      const std::optional<Link> link = probe.next();
      if (!link || link->kind != LinkKind::kWhole || trace::find_terms(link->record.type) == nullptr) continue;
      const std::optional<Link> behind = probe.next();
      if (!behind || (behind->kind != LinkKind::kDamaged && behind->kind != LinkKind::kCut)) return at;
    }
    return std::nullopt;
  }

  void show_record(const Link& link) {
    const collect::TraceRecord& record = link.record;
    const trace::RecordTerms* const terms = trace::find_terms(record.type);
    const std::string name = terms == nullptr ? "unknown" : terms->name;
    if (link.kind == LinkKind::kShort) {
      return say_bad(record.offset,
                     fmt::format("{}: {} bytes after its header; its fields and tails need {}", name,
                                 record.payload.size(), collect::bytes_needed(record.type, record.payload)));
    }
    ++totals_.records;
    Json line{{"offset", hex(record.offset)}, {"record", name}};
    if (terms == nullptr) line["number"] = static_cast<std::uint16_t>(record.type);
    line["pid"] = record.pid;
    line["tid"] = record.tid;
    if (record.time_ns != 0) line["time_ns"] = record.time_ns;
    line["bytes"] = sizeof(trace::RecordHeader) + record.payload.size();
    if (link.kind == LinkKind::kUnfinished) {
      ++totals_.unfinished;
      line["says"] = "unfinished: its writer was killed, or still writes";
    } else {
      line["fields"] =
          terms == nullptr ? Json{{"payload", hex_digits(record.payload)}} : read_payload(*terms, record.payload);
    }
    show(line);
  }

  const collect::TraceFile& file_;
  std::span<const std::byte> bytes_;
  Format format_;
  const std::function<bool(std::string_view)>& write_;
  Chain chain_;
  std::string pending_;
  bool has_stopped_ = false;
  Totals totals_;
};

}  // namespace

std::optional<Totals> dump_trace(const collect::TraceFile& file, Format format,
                                 const std::function<bool(std::string_view)>& write) {
  return Dump(file, format, write).run();
}

}  // namespace forksight::dump
