#include "command/run_cures.hpp"

#include <fmt/format.h>

#include <string_view>

#include "forksight/trace/cures.hpp"

namespace forksight {

namespace {

std::string write_list(const trace::CureSet& cures) {
  std::string list;
  for (std::size_t i = 0; i < trace::kCureCount; ++i) {
    if (!cures.has(static_cast<trace::Cure>(i))) continue;
    if (!list.empty()) list += ',';
    list += trace::kCures[i].name;
    if (cures.values[i] != 0) list += fmt::format("={}", cures.values[i]);
  }
  return list.empty() ? "none" : list;
}

}  // namespace

std::string check_cures(const std::string& list) {
  trace::CureSet cures;
  const trace::CureMistake mistake = trace::read_cures(list.c_str(), cures);
  if (mistake.word == nullptr) return list.empty() ? "give auto, none, or names of cures" : "";
  const std::string_view word(mistake.word, mistake.bytes);
  const std::string_view name = word.substr(0, word.find('='));
  for (const trace::CureTerms& cure : trace::kCures) {
    if (name != cure.name) continue;
    return cure.value == 0 ? fmt::format("{} takes no value", cure.name)
                           : fmt::format("{}: the value must be a number of {} above 0, for example {}={}", word,
                                         cure.unit, cure.name, cure.value);
  }
  std::string names = "auto, none";
  for (const trace::CureTerms& cure : trace::kCures) names += fmt::format(", {}", cure.name);
  return fmt::format("no cure is called \"{}\"; the choices are {}", word, names);
}

std::string describe_cures() {
  std::string text = "Cures for --cure, as a comma-separated list (auto: all sound cures; none: no cure):\n";
  for (const trace::CureTerms& cure : trace::kCures) {
    const std::string name = cure.value == 0 ? cure.name : fmt::format("{}={}", cure.name, cure.value);
    text += fmt::format("  {}  {}: {}\n", name, cure.is_sound ? "sound" : "NOT SOUND", cure.words);
  }
  return text;
}

void complete_cures(RunOptions& options, bool is_omp_given, bool is_on_orphan_given) {
  using trace::Cure;
  trace::CureSet cures;
  trace::read_cures(options.cure.c_str(), cures);
  if (!is_omp_given) options.omp = cures.has(Cure::kOmp) ? "auto" : "observe";
  if (!is_on_orphan_given) options.on_orphan = cures.has(Cure::kOrphans) ? "recover" : "report";
  cures.put(Cure::kOmp, options.omp != "observe");
  cures.put(Cure::kOrphans, options.on_orphan == "recover");
  options.cure = write_list(cures);
}

}  // namespace forksight
