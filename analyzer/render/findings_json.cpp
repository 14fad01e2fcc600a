#include "render/findings_json.hpp"

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "files/bounded_json.hpp"
#include "files/budgets.hpp"
#include "render/names.hpp"

namespace forksight::render {
namespace {

using Read = nlohmann::json;

constexpr std::size_t kMaxBytes = 64U << 20U;
constexpr std::size_t kMaxText = 256U << 10U;
constexpr std::size_t kMaxItems = 1U << 16U;
constexpr int kMaxDepth = 12;
constexpr int kMaxEnumerators = 64;

template <class Object, class Struct>
concept Of = std::same_as<std::remove_const_t<Object>, Struct>;

// Each visit_members() lists the members of one structure. Code that writes JSON and code that reads JSON both use
// these lists. The visitor is called with the name of each member and the member itself.

template <class Visitor, Of<model::Frame> Frame>
void visit_members(Visitor& visit, Frame& frame) {
  visit("function", frame.function);
  visit("file", frame.file);
  visit("line", frame.line);
  visit("module", frame.module);
  visit("offset", frame.offset);
  visit("approximate", frame.approximate);
  visit("inlined", frame.inlined);
  visit("python", frame.python);
}

// Lists the members that distinguish a process from other processes.
template <class Visitor, Of<model::Process> Process>
void visit_identity(Visitor& visit, Process& process) {
  visit("pid", process.pid);
  visit("start_ticks", process.start_ticks);
  visit("host", process.host);
  visit.rank("rank", process.rank);
}

template <class Visitor, Of<model::Process> Process>
void visit_members(Visitor& visit, Process& process) {
  visit("pid", process.pid);
  visit("ppid", process.ppid);
  visit("start_ticks", process.start_ticks);
  visit("exe", process.exe);
  visit("cmdline", process.cmdline);
  visit("host", process.host);
  visit.rank("rank", process.rank);
}

template <class Visitor, Of<Holder> H>
void visit_members(Visitor& visit, H& holder) {
  visit("pid", holder.pid);
  visit("tid", holder.tid);
  visit("name", holder.name);
  visit("library", holder.library);
  visit("start_routine", holder.start_routine);
  visit("owner", holder.owner);
  visit("alive", holder.alive);
}

template <class Visitor, Of<Culprit> C>
void visit_members(Visitor& visit, C& culprit) {
  visit("kind", culprit.kind);
  visit("name", culprit.name);
  visit("library", culprit.library);
  visit("address", culprit.address);
  visit("holder", culprit.holder);
  visit("waited_for", culprit.is_waited_for);
  visit.stack(culprit.stack);
  visit("stack_at_fork", culprit.is_at_fork);
  visit("stack_now", culprit.is_now);
}

template <class Visitor, Of<ForkSite> Fork>
void visit_members(Visitor& visit, Fork& fork) {
  visit("pid", fork.pid);
  visit("child", fork.child);
  visit.stack(fork.stack);
}

template <class Visitor, Of<Victim> V>
void visit_members(Visitor& visit, V& victim) {
  visit("pid", victim.pid);
  visit("via", victim.via);
}

template <class Visitor, Of<Fix> F>
void visit_members(Visitor& visit, F& fix) {
  visit("text", fix.text);
  visit("verified", fix.verified);
}

template <class Visitor, Of<Chance> C>
void visit_members(Visitor& visit, C& chance) {
  visit("low", chance.low);
  visit("high", chance.high);
}

template <class Visitor, Of<Finding> F>
void visit_members(Visitor& visit, F& finding) {
  visit("rule", finding.rule);
  visit(is_hang(finding) ? "hang" : "harm", finding.harm);
  visit("cause", finding.cause);
  visit("outcome", finding.outcome);
  visit("fingerprint", finding.fingerprint);
  visit("summary", finding.summary);
  visit("count", finding.count);
  visit.processes(finding);
  visit.object("thread", [&](auto& thread) {
    thread("tid", finding.tid);
    thread("name", finding.thread_name);
  });
  visit("culprit", finding.culprit);
  visit.stack(finding.stack);
  visit("fork", finding.fork);
  visit("chain", finding.chain);
  visit("victims", finding.victims);
  visit.unless_zero("more_victims", finding.more_victims);
  visit("fixes", finding.fixes);
  visit("odds", finding.odds);
}

class Writer {
 public:
  // `processes`: those to which findings refer. Needed for findings only.
  explicit Writer(JsonWriter& out, const std::vector<model::Process>* processes = nullptr)
      : out_(out), processes_(processes) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    out_.key(name);
    write(value);
  }
  void unless_zero(const char* name, std::uint64_t number) {
    if (number != 0) (*this)(name, number);
  }
  void rank(const char* name, int rank) { (*this)(name, rank < 0 ? std::nullopt : std::optional(rank)); }
  void stack(const model::Stack& stack) {
    (*this)("stack", stack.frames);
    (*this)("stack_cut", stack.cut);
  }
  void processes(const Finding& finding) {
    (*this)("process", processes_->at(finding.process));
    out_.key("processes");
    out_.begin_array();
    for (const model::ProcessId id : finding.processes) {
      out_.begin_object();
      visit_identity(*this, processes_->at(id));
      out_.end_object();
    }
    out_.end_array();
  }
  template <class Visit>
  void object(const char* name, const Visit& visit) {
    out_.key(name);
    out_.begin_object();
    visit(*this);
    out_.end_object();
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      out_.value(name_of(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      out_.value(value);
    } else {
      out_.begin_object();
      visit_members(*this, value);
      out_.end_object();
    }
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value) {
      write(*value);
    } else {
      out_.null();
    }
  }
  template <class T>
  void write(const std::vector<T>& items) {
    out_.begin_array();
    for (const T& item : items) write(item);
    out_.end_array();
  }

 private:
  JsonWriter& out_;
  const std::vector<model::Process>* processes_;
};

// Thrown at the first error. No finding of a text with an error is used.
struct Malformed {
  std::string what;
};

using Identity = std::tuple<std::int32_t, std::uint64_t, std::string, int>;
using ProcessIds = std::map<Identity, model::ProcessId>;

Identity identity_of(const model::Process& process) {
  return {process.pid, process.start_ticks, process.host, process.rank};
}

class Reader {
 public:
  Reader(const Read& json, const ProcessIds& ids) : json_(json), ids_(ids) {
    if (!json.is_object()) throw Malformed{"it is not a JSON object"};
  }

  template <class T>
  void operator()(const char* name, T& value) {
    read(member(name), name, value);
  }
  void unless_zero(const char* name, std::uint64_t& number) {
    if (json_.contains(name)) (*this)(name, number);
  }
  void rank(const char* name, int& rank) {
    rank = -1;
    if (!member(name).is_null()) (*this)(name, rank);
  }
  void stack(model::Stack& stack) {
    (*this)("stack", stack.frames);
    (*this)("stack_cut", stack.cut);
  }
  void processes(Finding& finding) {
    for (const Read& item : list_of(member("processes"), "processes")) {
      model::Process process;
      Reader one(item, ids_);
      visit_identity(one, process);
      const auto at = ids_.find(identity_of(process));
      if (at == ids_.end()) throw Malformed{"a finding is about a process that is not listed"};
      finding.processes.push_back(at->second);
    }
    if (finding.processes.empty()) throw Malformed{"a finding is about no process"};
    finding.process = finding.processes.front();
  }
  template <class Visit>
  void object(const char* name, const Visit& visit) {
    Reader inner(member(name), ids_);
    visit(inner);
  }

  const Read& member(const char* name) const {
    const auto at = json_.find(name);
    if (at == json_.end()) throw Malformed{fmt::format("\"{}\" is missing", name)};
    return *at;
  }
  static const Read& list_of(const Read& json, const char* name) {
    if (!json.is_array() || json.size() > kMaxItems)
      throw Malformed{fmt::format("\"{}\" is not a list, or is too long", name)};
    return json;
  }

 private:
  template <class T>
  void read(const Read& json, const char* name, T& value) const {
    if constexpr (std::same_as<T, bool>) {
      if (!json.is_boolean()) throw Malformed{fmt::format("\"{}\" is neither true nor false", name)};
      value = json.get<bool>();
    } else if constexpr (std::same_as<T, double>) {
      if (!json.is_number()) throw Malformed{fmt::format("\"{}\" is not a number", name)};
      value = json.get<double>();
    } else if constexpr (std::is_integral_v<T>) {
      value = number<T>(json, name);
    } else if constexpr (std::is_enum_v<T>) {
      value = word<T>(json, name);
    } else if constexpr (std::same_as<T, std::string>) {
      if (!json.is_string() || json.get_ref<const std::string&>().size() > kMaxText)
        throw Malformed{fmt::format("\"{}\" is not a text, or is too long", name)};
      value = json.get<std::string>();
    } else {
      Reader inner(json, ids_);
      visit_members(inner, value);
    }
  }
  template <class T>
  void read(const Read& json, const char* name, std::optional<T>& value) const {
    if (!json.is_null()) read(json, name, value.emplace());
  }
  template <class T>
  void read(const Read& json, const char* name, std::vector<T>& items) const {
    for (const Read& item : list_of(json, name)) read(item, name, items.emplace_back());
  }

  template <class T>
  static T number(const Read& json, const char* name) {
    if (json.is_number_unsigned() && std::in_range<T>(json.get<std::uint64_t>()))
      return static_cast<T>(json.get<std::uint64_t>());
    if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<std::int64_t>()))
      return static_cast<T>(json.get<std::int64_t>());
    throw Malformed{fmt::format("\"{}\" is not a number in range", name)};
  }

  template <class T>
  static T word(const Read& json, const char* name) {
    for (int value = 0; json.is_string() && value < kMaxEnumerators; ++value) {
      if (json.get_ref<const std::string&>() == name_of(static_cast<T>(value))) return static_cast<T>(value);
    }
    throw Malformed{fmt::format("\"{}\" is an unknown word", name)};
  }

  const Read& json_;
  const ProcessIds& ids_;
};

ToldFindings read_document(const Read& json, std::string_view schema) {
  ToldFindings told;
  ProcessIds ids;
  Reader document(json, ids);
  std::string named;
  document("schema", named);
  if (named != schema) throw Malformed{fmt::format("its schema is not \"{}\"", schema)};
  document("processes", told.processes);
  for (model::ProcessId id = 0; id < told.processes.size(); ++id) ids.try_emplace(identity_of(told.processes[id]), id);
  for (const Read& item : Reader::list_of(document.member("findings"), "findings")) {
    Finding& finding = told.findings.emplace_back();
    Reader reader(item, ids);
    reader("outcome", finding.outcome);  // the name under which `harm` is read depends on the outcome
    visit_members(reader, finding);
    if (finding.harm == Certainty::kUnknown) throw Malformed{"a finding that claims nothing"};
  }
  return told;
}

}  // namespace

void write_process_members(JsonWriter& out, const model::Process& process) {
  Writer writer(out);
  visit_members(writer, process);
}

void write_stack(JsonWriter& out, const model::Stack& stack) { Writer(out).write(stack.frames); }

void write_finding(JsonWriter& out, const Finding& finding, const std::vector<model::Process>& processes) {
  Writer(out, &processes).write(finding);
}

std::string tell_findings(std::string_view schema, const ToldFindings& told) {
  return json_text([&](JsonWriter& out) {
    Writer members(out, &told.processes);
    out.begin_object();
    out.member("schema", schema);
    members("processes", told.processes);
    members("findings", told.findings);
    out.end_object();
  });
}

Result<ToldFindings> read_findings(std::string_view schema, std::string_view text) {
  if (text.size() > kMaxBytes) return Error{"too big for findings"};
  const std::string fault = files::find_json_fault(text, {files::kMaxOutsideItems, kMaxDepth});
  if (!fault.empty()) return Error{fault};
  const Read json = Read::parse(text, nullptr, false);
  try {
    return read_document(json, schema);
  } catch (const Malformed& malformed) {
    return Error{malformed.what};
  }
}

}  // namespace forksight::render
