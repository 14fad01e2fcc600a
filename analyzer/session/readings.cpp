#include "session/readings.hpp"

#include <fmt/core.h>

#include <utility>

#include "files/dead_places.hpp"
#include "files/named_paths.hpp"
#include "guard/read_model.hpp"
#include "inspect/build_model.hpp"

namespace forksight {

Result<model::Model> RunReadings::load(const std::filesystem::path& folder, const collect::LoadOptions& options) {
  files::name_path(folder.string());
  return read("the traces of the run were not read", false,
              [&](const files::Reader& reader) { return collect::load_run(reader, {folder}, options); });
}

std::optional<model::Model> RunReadings::look(std::int32_t pid, const inspect::LiveTreeOptions& options) {
  auto seen = read("the processes of the run were not examined", true,
                   [&](const files::Reader& reader) -> Result<model::Model> {
                     auto tree = inspect::look_at_tree(reader, pid, options);
                     if (!tree) return Error{tree.error()};
                     return inspect::build_model(tree->subjects);
                   });
  return seen ? std::optional(std::move(seen).value()) : std::nullopt;
}

std::vector<std::string> RunReadings::take_failures() { return std::exchange(failures_, {}); }

Result<model::Model> RunReadings::read(const char* what, bool needs_ancestor,
                                       const std::function<Result<model::Model>(const files::Reader&)>& work) {
  guard::ModelRead done = guard::read_model(work, {.needs_ancestor = needs_ancestor});
  has_failed_ = done.has_failed;
  if (has_failed_) note(fmt::format("{}: {}", what, done.model.error()));
  for (const std::string& sentence : files::describe_dead_places()) note(sentence);
  return std::move(done.model);
}

void RunReadings::note(const std::string& sentence) {
  if (said_.insert(sentence).second) failures_.push_back(sentence);
}

}  // namespace forksight
