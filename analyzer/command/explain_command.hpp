// The verb `explain`: the pages of docs/hazards, which are part of the binary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. If the verb was chosen and the line is valid, `status` is the exit status when the parse returns.
void add_explain_command(CLI::App& app, int& status);

// Returns the slugs of hazards that a user who typed `slug` may have meant, the nearest first.
std::vector<std::string> find_nearest_slugs(std::string_view slug);

}  // namespace forksight
