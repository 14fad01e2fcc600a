#include "session/outside_file.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "render/names.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kSchema[] = "forksight-outside/1";
constexpr std::size_t kMaxBytes = 64U << 20U;
constexpr std::size_t kMaxText = 64U << 10U;
constexpr std::size_t kMaxItems = 1U << 16U;
constexpr int kMaxDepth = 10;

Json to_json(const model::Stack& stack) {
  Json frames = Json::array();
  for (const model::Frame& frame : stack.frames) {
    frames.push_back({{"function", frame.function},
                      {"file", frame.file},
                      {"line", frame.line},
                      {"module", frame.module},
                      {"offset", frame.offset},
                      {"approximate", frame.approximate},
                      {"inlined", frame.inlined},
                      {"python", frame.python}});
  }
  return {{"frames", std::move(frames)}, {"cut", stack.cut}};
}

Json to_json(const Culprit& culprit) {
  Json json{{"kind", render::name_of(culprit.kind)},
            {"name", culprit.name},
            {"library", culprit.library},
            {"address", culprit.address},
            {"is_waited_for", culprit.is_waited_for},
            {"is_at_fork", culprit.is_at_fork},
            {"is_now", culprit.is_now},
            {"stack", to_json(culprit.stack)}};
  if (const auto& holder = culprit.holder) {
    json["holder"] = {{"pid", holder->pid},
                      {"tid", holder->tid},
                      {"name", holder->name},
                      {"library", holder->library},
                      {"start_routine", holder->start_routine},
                      {"owner", holder->owner},
                      {"alive", holder->alive}};
  }
  return json;
}

Json to_json(const model::Process& process) {
  return {{"pid", process.pid}, {"ppid", process.ppid},       {"start_ticks", process.start_ticks},
          {"exe", process.exe}, {"cmdline", process.cmdline}, {"host", process.host}};
}

Json to_json(const KeptFinding& kept) {
  const Finding& finding = kept.finding;
  Json json{{"rule", finding.rule},
            {"harm", render::name_of(finding.harm)},
            {"cause", render::name_of(finding.cause)},
            {"outcome", render::name_of(finding.outcome)},
            {"fingerprint", finding.fingerprint},
            {"summary", finding.summary},
            {"tid", finding.tid},
            {"thread_name", finding.thread_name},
            {"culprit", to_json(finding.culprit)},
            {"stack", to_json(finding.stack)},
            {"chain", finding.chain},
            {"count", finding.count}};
  if (finding.fork) {
    json["fork"] = {
        {"pid", finding.fork->pid}, {"child", finding.fork->child}, {"stack", to_json(finding.fork->stack)}};
  }
  for (const Victim& victim : finding.victims) json["victims"].push_back({{"pid", victim.pid}, {"via", victim.via}});
  for (const Fix& fix : finding.fixes) json["fixes"].push_back({{"text", fix.text}, {"verified", fix.verified}});
  for (const model::Process& process : kept.processes) json["processes"].push_back(to_json(process));
  return json;
}

// Thrown away with the whole text at the first thing that is wrong.
struct Malformed {
  std::string what;
};

const Json* find(const Json& json, const char* name) {
  if (!json.is_object()) throw Malformed{"something that is no object"};
  const auto member = json.find(name);
  return member == json.end() ? nullptr : &*member;
}

std::string text(const Json& json, const char* name) {
  const Json* const value = find(json, name);
  if (value == nullptr || !value->is_string() || value->get_ref<const std::string&>().size() > kMaxText)
    throw Malformed{fmt::format("\"{}\" is no text of bearable size", name)};
  return value->get<std::string>();
}

template <class T>
T number(const Json& json, const char* name) {
  const Json* const value = find(json, name);
  if (value != nullptr && value->is_number_unsigned() && std::in_range<T>(value->get<std::uint64_t>()))
    return static_cast<T>(value->get<std::uint64_t>());
  if (value != nullptr && value->is_number_integer() && !value->is_number_unsigned() &&
      std::in_range<T>(value->get<std::int64_t>()))
    return static_cast<T>(value->get<std::int64_t>());
  throw Malformed{fmt::format("\"{}\" is no number in range", name)};
}

bool flag(const Json& json, const char* name) {
  const Json* const value = find(json, name);
  if (value == nullptr || !value->is_boolean()) throw Malformed{fmt::format("\"{}\" is neither true nor false", name)};
  return value->get<bool>();
}

template <class Visit>
void for_each(const Json& json, const char* name, const Visit& visit) {
  const Json* const list = find(json, name);
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMaxItems)
    throw Malformed{fmt::format("\"{}\" is no list of bearable size", name)};
  for (const Json& item : *list) visit(item);
}

std::vector<std::string> texts(const Json& json, const char* name) {
  std::vector<std::string> all;
  for_each(json, name, [&](const Json& item) { all.push_back(text(Json{{"", item}}, "")); });
  return all;
}

template <class T>
T word(const Json& json, const char* name, T last) {
  const std::string read = text(json, name);
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    if (read == render::name_of(static_cast<T>(value))) return static_cast<T>(value);
  }
  throw Malformed{fmt::format("\"{}\" is an unknown word", name)};
}

model::Stack read_stack(const Json& json) {
  model::Stack stack;
  stack.cut = flag(json, "cut");
  for_each(json, "frames", [&](const Json& item) {
    model::Frame frame;
    frame.function = text(item, "function");
    frame.file = text(item, "file");
    frame.line = number<int>(item, "line");
    frame.module = text(item, "module");
    frame.offset = number<std::uint64_t>(item, "offset");
    frame.approximate = flag(item, "approximate");
    frame.inlined = flag(item, "inlined");
    frame.python = flag(item, "python");
    stack.frames.push_back(std::move(frame));
  });
  return stack;
}

model::Stack read_stack_of(const Json& json) {
  const Json* const stack = find(json, "stack");
  return stack == nullptr ? model::Stack{} : read_stack(*stack);
}

Culprit read_culprit(const Json& json) {
  Culprit culprit;
  culprit.kind = word(json, "kind", CulpritKind::kDevice);
  culprit.name = text(json, "name");
  culprit.library = text(json, "library");
  culprit.address = number<std::uint64_t>(json, "address");
  culprit.is_waited_for = flag(json, "is_waited_for");
  culprit.is_at_fork = flag(json, "is_at_fork");
  culprit.is_now = flag(json, "is_now");
  culprit.stack = read_stack_of(json);
  if (const Json* const from = find(json, "holder")) {
    Holder& holder = culprit.holder.emplace();
    holder.pid = number<std::int32_t>(*from, "pid");
    holder.tid = number<std::int32_t>(*from, "tid");
    holder.name = text(*from, "name");
    holder.library = text(*from, "library");
    holder.start_routine = text(*from, "start_routine");
    holder.owner = text(*from, "owner");
    holder.alive = flag(*from, "alive");
  }
  return culprit;
}

model::Process read_process(const Json& json) {
  model::Process process;
  process.pid = number<std::int32_t>(json, "pid");
  process.ppid = number<std::int32_t>(json, "ppid");
  process.start_ticks = number<std::uint64_t>(json, "start_ticks");
  process.exe = text(json, "exe");
  process.cmdline = texts(json, "cmdline");
  process.host = text(json, "host");
  return process;
}

KeptFinding read_finding(const Json& json) {
  KeptFinding kept;
  Finding& finding = kept.finding;
  finding.rule = text(json, "rule");
  finding.harm = word(json, "harm", Certainty::kProven);
  finding.cause = word(json, "cause", Certainty::kProven);
  finding.outcome = word(json, "outcome", Outcome::kCured);
  finding.fingerprint = text(json, "fingerprint");
  finding.summary = text(json, "summary");
  finding.tid = number<std::int32_t>(json, "tid");
  finding.thread_name = text(json, "thread_name");
  if (const Json* const culprit = find(json, "culprit")) finding.culprit = read_culprit(*culprit);
  finding.stack = read_stack_of(json);
  finding.chain = texts(json, "chain");
  finding.count = number<std::uint64_t>(json, "count");
  if (const Json* const fork = find(json, "fork")) {
    finding.fork =
        ForkSite{number<std::int32_t>(*fork, "pid"), number<std::int32_t>(*fork, "child"), read_stack_of(*fork)};
  }
  for_each(json, "victims", [&](const Json& item) {
    finding.victims.push_back({number<std::int32_t>(item, "pid"), text(item, "via")});
  });
  for_each(json, "fixes", [&](const Json& item) {
    finding.fixes.push_back({text(item, "text"), flag(item, "verified")});
  });
  for_each(json, "processes", [&](const Json& item) { kept.processes.push_back(read_process(item)); });
  if (kept.processes.empty()) throw Malformed{"a finding is about no process"};
  return kept;
}

}  // namespace

std::string outside_to_json(const std::vector<KeptFinding>& kept) {
  Json json{{"schema", kSchema}, {"findings", Json::array()}};
  for (const KeptFinding& one : kept) json["findings"].push_back(to_json(one));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<KeptFinding>> parse_outside(std::string_view text_of_file) {
  bool is_too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return !is_too_deep;
  };
  if (text_of_file.size() > kMaxBytes) return Error{"too big for findings"};
  const Json json = Json::parse(text_of_file, watch_depth, false);
  if (is_too_deep || json.is_discarded()) return Error{"not valid JSON: cut, or no findings"};
  std::vector<KeptFinding> kept;
  try {
    if (text(json, "schema") != kSchema) return Error{fmt::format("its schema is not \"{}\"", kSchema)};
    for_each(json, "findings", [&](const Json& item) { kept.push_back(read_finding(item)); });
  } catch (const Malformed& malformed) {
    return Error{malformed.what};
  }
  return kept;
}

std::string write_outside(const fs::path& folder, const std::vector<KeptFinding>& kept) {
  const fs::path file = folder / kOutsideFile;
  const fs::path draft = folder / (std::string(kOutsideFile) + ".new");
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream << outside_to_json(kept);
  stream.close();
  std::error_code error;
  if (stream) fs::rename(draft, file, error);
  return stream && !error ? std::string() : fmt::format("{}: cannot be written", file.string());
}

std::vector<KeptFinding> read_outside(const std::vector<fs::path>& folders, std::vector<std::string>& limits) {
  std::vector<KeptFinding> all;
  const auto add = [&](const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string content;
    std::vector<char> piece(std::size_t{1} << 16U);
    while (content.size() <= kMaxBytes &&
           (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) || stream.gcount() > 0))
      content.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
    auto kept = parse_outside(content);
    if (!kept) {
      limits.push_back(fmt::format("{}: {}", file.string(), kept.error()));
      return;
    }
    std::move(kept->begin(), kept->end(), std::back_inserter(all));
  };
  for (const fs::path& folder : folders) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->path().filename() == kOutsideFile && entry->is_regular_file(ignored)) add(entry->path());
    }
  }
  return all;
}

}  // namespace forksight
