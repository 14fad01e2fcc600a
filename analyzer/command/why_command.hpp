// `forksight why`: explains a process tree that hangs already.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_why_command(CLI::App& app, int& status);

}  // namespace forksight
