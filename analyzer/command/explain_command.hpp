// The verb `explain`: the pages of docs/hazards, which are part of the binary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. `status` has the same meaning as in add_report_command().
void add_explain_command(CLI::App& app, int& status);

// Returns the slugs of hazards that a user who typed `slug` may have meant, the nearest first.
std::vector<std::string> find_nearest_slugs(std::string_view slug);

}  // namespace forksight
