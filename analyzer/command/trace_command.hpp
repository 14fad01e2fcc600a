// The verb `trace`.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_trace_command(CLI::App& app, int& status);

}  // namespace forksight
