#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "collect/run_log.hpp"
#include "collect/run_log_names.hpp"
#include "files/budgets.hpp"
#include "files/open_file.hpp"

namespace forksight::collect {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = 64U << 10U;
constexpr std::size_t kMaxItems = 1U << 20U;
constexpr std::size_t kMaxDepth = 8;

struct Problem {
  std::string text;      // the first error; "": none
  std::size_t rows = 0;  // the number of list items that were read so far
  std::size_t most_rows = files::kMaxRunLogRows;
};

// Reads members of one object. `problem` keeps the first error.
class Reader {
 public:
  Reader(const Json& object, std::string where, Problem& problem)
      : object_(object), where_(std::move(where)), problem_(problem) {
    if (!object.is_object()) reject("is not a JSON object");
  }

  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto member = object_.find(name);
    return member == object_.end() ? nullptr : &*member;
  }

  void text(const char* name, std::string& out) const {
    if (const Json* value = find(name)) assign_text(*value, name, out);
  }

  void texts(const char* name, std::vector<std::string>& out) const {
    for_each(name, [&](const Json& item) { assign_text(item, name, out.emplace_back()); });
  }

  template <class T>
  void number(const char* name, T& out) const {
    if (const Json* value = find(name)) assign_number(*value, name, out);
  }

  template <class T>
  void numbers(const char* name, std::vector<T>& out) const {
    for_each(name, [&](const Json& item) { assign_number(item, name, out.emplace_back()); });
  }

  void flag(const char* name, bool& out) const {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (value->is_boolean()) {
      out = value->get<bool>();
    } else {
      reject(name, "is neither true nor false");
    }
  }

  template <class Names, class Value>
  void word(const char* name, const Names& names, Value& out) const {
    std::string read;
    text(name, read);
    if (const auto value = value_of(names, read)) {
      out = *value;
    } else {
      reject(name, fmt::format("is an unknown word \"{}\"", read.substr(0, 40)));
    }
  }

  void address(const char* name, std::uint64_t& out) const {
    std::string read;
    text(name, read);
    if (read.empty()) return;
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(read.c_str(), &end, 16);
    if (errno != 0 || *end != '\0' || !read.starts_with("0x")) {
      reject(name, "is not an address");
      return;
    }
    out = value;
  }

  template <class Visit>
  void for_each(const char* name, const Visit& visit) const {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > kMaxItems) {
      reject(name, "is not a list, or is too long");
      return;
    }
    for (const Json& item : *list) {
      if (++problem_.rows > problem_.most_rows) reject(name, "has more rows than forksight reads");
      if (!problem_.text.empty()) return;
      visit(item);
    }
  }

  void reject(std::string_view name, std::string_view what) const {
    if (problem_.text.empty()) problem_.text = fmt::format("{}: \"{}\" {}", where_, name, what);
  }
  void reject(std::string_view what) const {
    if (problem_.text.empty()) problem_.text = fmt::format("{} {}", where_, what);
  }

 private:
  template <class T>
  void assign_number(const Json& value, const char* name, T& out) const {
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
        out = static_cast<T>(number);
        return;
      }
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      if (std::in_range<T>(number)) {
        out = static_cast<T>(number);
        return;
      }
    }
    reject(name, "is not a number in range");
  }

  void assign_text(const Json& value, const char* name, std::string& out) const {
    if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxText) {
      reject(name, "is not a text, or is too long");
      return;
    }
    out = value.get<std::string>();
  }

  const Json& object_;
  std::string where_;
  Problem& problem_;
};

model::Waker read_waker(const Json& json, Problem& problem) {
  model::Waker waker;
  const Reader reader(json, "a waker", problem);
  reader.number("pid", waker.pid);
  reader.number("tid", waker.tid);
  reader.number("fd", waker.fd);
  reader.text("via", waker.via);
  return waker;
}

model::Ender read_ender(const Json& json, Problem& problem) {
  model::Ender ender;
  const Reader reader(json, "an ender", problem);
  std::string state;
  bool never_wrote = false;
  reader.word("kind", kEnderKindNames, ender.kind);
  reader.text("what", ender.what);
  if (reader.find("in_ms") != nullptr) reader.number("in_ms", ender.in_ms.emplace());
  reader.number("pid", ender.pid);
  reader.number("tid", ender.tid);
  reader.number("fd", ender.fd);
  reader.text("via", ender.via);
  reader.text("command", ender.command);
  reader.text("state", state);
  if (state.size() == 1) ender.state = state.front();
  reader.flag("frozen", ender.is_frozen);
  reader.flag("never_wrote", never_wrote);
  ender.may_have_written = !never_wrote;
  return ender;
}

model::Frame read_frame(const Json& json, Problem& problem) {
  model::Frame frame;
  const Reader reader(json, "a frame", problem);
  reader.text("function", frame.function);
  reader.text("file", frame.file);
  reader.number("line", frame.line);
  reader.text("module", frame.module);
  reader.address("offset", frame.offset);
  reader.flag("approximate", frame.approximate);
  reader.flag("inlined", frame.inlined);
  reader.flag("python", frame.python);
  return frame;
}

model::Wait read_wait(const Json& json, Problem& problem) {
  model::Wait wait;
  const Reader reader(json, "a wait", problem);
  std::string state;
  reader.number("tid", wait.tid);
  reader.text("name", wait.name);
  reader.text("state", state);
  if (state.size() == 1) wait.state = state.front();
  reader.word("kind", kWaitKindNames, wait.kind);
  reader.address("object", wait.object);
  reader.number("target_pid", wait.target_pid);
  reader.flag("has_timeout", wait.has_timeout);
  reader.flag("is_shared", wait.is_shared);
  reader.flag("is_stuck", wait.is_stuck);
  reader.flag("wakers_known", wait.wakers_known);
  if (reader.find("use") != nullptr) {
    reader.word("use", kFutexUseNames, wait.use);
    reader.number("owner", wait.owner);
    reader.flag("owner_is_gone", wait.owner_is_gone);
    reader.number("readers", wait.readers);
    reader.word("mutex_type", kMutexTypeNames, wait.mutex_type);
  }
  if (reader.find("semaphore_use") != nullptr) reader.word("semaphore_use", kSemaphoreUseNames, wait.semaphore_use);
  reader.number("fd", wait.fd);
  reader.text("path", wait.path);
  reader.text("object_module", wait.object_module);
  reader.address("module_bias", wait.module_bias);
  reader.text("object_name", wait.object_name);
  reader.for_each("stack", [&](const Json& frame) { wait.stack.frames.push_back(read_frame(frame, problem)); });
  reader.flag("stack_cut", wait.stack.cut);
  reader.flag("inherited", wait.is_inherited);
  reader.flag("may_be_cancelled", wait.may_be_cancelled);
  reader.text("call", wait.call);
  reader.text("target", wait.target);
  if (reader.find("for_ms") != nullptr) reader.number("for_ms", wait.for_ms.emplace());
  wait.are_enders_known = reader.find("enders") != nullptr;
  reader.for_each("enders", [&](const Json& ender) { wait.enders.push_back(read_ender(ender, problem)); });
  reader.for_each("wakers", [&](const Json& waker) { wait.wakers.push_back(read_waker(waker, problem)); });
  return wait;
}

LoggedProcess read_process(const Json& json, Problem& problem) {
  LoggedProcess process;
  const Reader reader(json, "a process", problem);
  reader.number("pid", process.pid);
  if (process.pid <= 0) reader.reject("has no pid");
  reader.number("ppid", process.ppid);
  reader.number("start_ticks", process.start_ticks);
  reader.text("comm", process.comm);
  reader.text("exe", process.exe);
  reader.texts("cmdline", process.cmdline);
  reader.word("liveness", kLivenessNames, process.liveness);
  reader.number("stuck_for_ms", process.stuck_for_ms);
  reader.text("waits_via", process.waits_via);
  reader.for_each("waits", [&](const Json& wait) { process.waits.push_back(read_wait(wait, problem)); });
  if (const Json* target = reader.find("waits_for")) {
    const Reader of(*target, "\"waits_for\"", problem);
    of.number("pid", process.waits_for_pid);
    of.number("start_ticks", process.waits_for_start_ticks);
  }
  if (reader.find("exit_status") != nullptr) reader.number("exit_status", process.exit_status.emplace());
  reader.address("unheard_signals", process.unheard_signals);
  reader.number("unheard_for_ms", process.unheard_for_ms);
  reader.texts("ways_out", process.ways_out);
  reader.flag("may_be_timed_out", process.may_be_timed_out);
  reader.flag("lone", process.never_had_other_threads);
  reader.flag("killed_by_run", process.killed_by_run);
  reader.flag("unreadable", process.is_unreadable);
  reader.numbers("went_on", process.went_on);
  if (reader.find("shim_start") != nullptr) reader.address("shim_start", process.shim_start.emplace());
  return process;
}

LoggedEnd read_end(const Json& json, Problem& problem) {
  LoggedEnd end;
  const Reader reader(json, "an end", problem);
  reader.number("pid", end.pid);
  if (end.pid <= 0) reader.reject("has no pid");
  reader.number("start_ticks", end.start_ticks);
  reader.number("gone_ns", end.gone_ns);
  return end;
}

// Builds the JSON tree of the log. When a process, a wait or an end is complete, it is moved from the tree to the
// RunLog. So the tree stays small, even if the log is long. The parser stops at the first error.
class RunLogParser : public nlohmann::json_sax<Json> {
 public:
  RunLogParser(RunLog& log, Problem& problem, const RunLogCosts& most) : log_(log), problem_(problem), most_(most) {}

  const Json& rest() const { return rest_; }
  std::size_t items() const { return items_; }
  std::size_t all_waits() const { return all_waits_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    if (open_.size() == kKeyOfLog) of_log_ = name;
    if (open_.size() == kKeyOfProcess) of_process_ = name;
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override {
    if (open_.size() == kRow) before_row_ = items_in_tree_;
    if (open_.size() == kWait) before_wait_ = items_in_tree_;
    return enter(Json::object());
  }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_object() override {
    const Json& object = *open_.back();
    open_.pop_back();
    if (take(open_.size(), object)) open_.back()->get_ref<Json::array_t&>().pop_back();
    return problem_.text.empty();
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    if (problem_.text.empty()) problem_.text = "not valid JSON: cut, or not a run log";
    return false;
  }

 private:
  // The parser recognises its place in the log by the size of `open_`, the number of open lists and objects. These are
  // the sizes at four places: a key of the log, an item of a list in the log, a key of such an item, and an item of a
  // list in such an item.
  static constexpr std::size_t kKeyOfLog = 1;
  static constexpr std::size_t kRow = 2;
  static constexpr std::size_t kKeyOfProcess = 3;
  static constexpr std::size_t kWait = 4;

  // Puts the value into the tree. Returns null if the log has too many items.
  Json* place(Json value) {
    if (++items_ > of(most_, RunLogCost::kItems))
      problem_.text = fmt::format("has more than {} items", of(most_, RunLogCost::kItems));
    else if (++items_in_tree_ > files::kMaxRunLogLooseItems)
      problem_.text = fmt::format("has more than {} items in one of its members", files::kMaxRunLogLooseItems);
    if (!problem_.text.empty()) return nullptr;
    if (open_.empty()) return &(rest_ = std::move(value));
    Json& in = *open_.back();
    if (!in.is_array()) return &(in[key_] = std::move(value));
    in.push_back(std::move(value));
    return &in.back();
  }
  bool add(Json value) { return place(std::move(value)) != nullptr; }
  bool enter(Json value) {
    if (open_.size() >= kMaxDepth) problem_.text = fmt::format("has lists in lists, more than {} deep", kMaxDepth);
    Json* const at = problem_.text.empty() ? place(std::move(value)) : nullptr;
    if (at != nullptr) open_.push_back(at);
    return at != nullptr;
  }

  // Moves an object from the tree to the RunLog if it is a process, a wait or an end. `depth`: the number of lists and
  // objects around `object`. Returns true if the tree may drop the object.
  bool take(std::size_t depth, const Json& object) {
    if ((depth != kRow && depth != kWait) || !open_.back()->is_array()) return false;
    const bool is_process = depth == kRow && of_log_ == "processes";
    const bool is_end = depth == kRow && of_log_ == "ends";
    const bool is_wait = depth == kWait && of_log_ == "processes" && of_process_ == "waits";
    if (!is_process && !is_end && !is_wait) return false;
    if (is_wait) {
      waits_.push_back(read_wait(object, problem_));
      ++all_waits_;
      items_in_tree_ = before_wait_;
    } else if (is_process) {
      LoggedProcess& process = log_.processes.emplace_back(read_process(object, problem_));
      process.waits = std::move(waits_);
      waits_.clear();
      items_in_tree_ = before_row_;
    } else {
      log_.ends.push_back(read_end(object, problem_));
      items_in_tree_ = before_row_;
    }
    const bool is_within_limits = ++problem_.rows <= problem_.most_rows &&
                                  all_waits_ <= of(most_, RunLogCost::kWaits) &&
                                  log_.processes.size() <= of(most_, RunLogCost::kProcesses);
    if (!is_within_limits && problem_.text.empty())
      problem_.text = "it has more processes, waiting threads or ends than forksight reads";
    return true;
  }

  RunLog& log_;
  Problem& problem_;
  RunLogCosts most_;
  Json rest_;                       // the values that were not moved to the RunLog
  std::vector<Json*> open_;         // lists and objects that are not complete yet, the outermost first
  std::string key_;                 // the key of the next value
  std::string of_log_;              // the member of the log that is being read
  std::string of_process_;          // the member of a process that is being read
  std::vector<model::Wait> waits_;  // the waits of the process that is being read
  std::size_t all_waits_ = 0;
  std::size_t items_ = 0;
  std::size_t items_in_tree_ = 0;  // items that are in the tree now
  std::size_t before_row_ = 0;
  std::size_t before_wait_ = 0;
};

}  // namespace

Result<RunLog> parse_run_log(std::string_view text, const RunLogCosts& most) {
  RunLog log;
  Problem problem;
  problem.most_rows = of(most, RunLogCost::kRows);
  RunLogParser parser(log, problem, most);
  if (!Json::sax_parse(text, &parser) || !problem.text.empty()) return Error{problem.text};
  const Reader reader(parser.rest(), "the run log", problem);
  std::string schema;
  reader.text("schema", schema);
  if (problem.text.empty() && schema != kRunLogSchema) {
    return Error{fmt::format("schema \"{}\", this build reads \"{}\"", schema.substr(0, 40), kRunLogSchema)};
  }
  reader.texts("command", log.command);
  reader.text("started_at", log.started_at);
  reader.text("host", log.host);
  reader.texts("limits", log.limits);
  // An item that is still in one of these lists is not an object. read_process() or read_end() reports this as an
  // error.
  reader.for_each("processes", [&](const Json& process) { read_process(process, problem); });
  reader.for_each("ends", [&](const Json& end) { read_end(end, problem); });
  if (!problem.text.empty()) return Error{problem.text};
  log.costs = {text.size(), parser.items(), problem.rows, parser.all_waits(), log.processes.size()};
  return log;
}

Result<RunLog> read_run_log(const std::filesystem::path& file, const RunLogCosts& most, std::size_t* bytes) {
  const auto text = files::read_text(file.string(), of(most, RunLogCost::kBytes));
  if (!text) return Error{text.error()};
  if (bytes != nullptr) *bytes = text->text.size();
  auto log = parse_run_log(text->text, most);
  if (!log) return Error{fmt::format("{}: {}", file.string(), log.error())};
  log->owner = text->owner;
  return log;
}

}  // namespace forksight::collect
