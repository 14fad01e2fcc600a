// `forksight queue`: shows what is in a shared-memory queue and who holds it. Removes queues that were left behind.
// Measures what a message costs on this machine.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_queue_command(CLI::App& app, int& status);

}  // namespace forksight
