#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace forksight::bench {
namespace {

void list() {
  std::printf("[");
  for (const Kind& kind : kinds()) {
    std::printf("%s{\"name\": \"%s\", \"copies\": %s, \"spins\": %s, \"takes_many\": %s}",
                &kind == kinds().data() ? "" : ", ", std::string(kind.name).c_str(), kind.copies ? "true" : "false",
                kind.spins ? "true" : "false", kind.takes_many ? "true" : "false");
  }
  std::printf("]\n");
}

}  // namespace

Options parse(int argc, char** argv) {
  Options made;
  CLI::App app{"Measures one figure of one transport, and prints it as a JSON object", "bench_queue"};
  bool lists = false;
  std::string spin_us = "0";
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  app.add_flag("--list", lists, "Print the transports of this build as JSON, and end");
  app.add_option("--transport", made.transport, "The transport")->check(CLI::IsMember(names));
  app.add_option("--measure", made.measure, "What to measure")
      ->check(CLI::IsMember({"round_trip", "stream", "crowd"}))
      ->capture_default_str();
  app.add_option("--name", made.shape.name, "A name, for transports that need one")->capture_default_str();
  app.add_option("--bytes", made.shape.bytes, "Size of a message in bytes")
      ->check(CLI::Range(sizeof(std::uint64_t), std::size_t{1} << 40))
      ->capture_default_str();
  app.add_option("--depth", made.shape.depth, "How many messages may be on the way")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--spin-us", spin_us, "Microseconds before a waiter sleeps, or `ever`")
      ->check(CLI::IsMember({"ever"}) | CLI::Range(0u, kSpinsForEver - 1))
      ->capture_default_str();
  app.add_option("--idle", made.shape.idle, "Idle participants of forksight's queue")->capture_default_str();
  app.add_option("--slots", made.shape.slots, "Slots of forksight's queue; 0: as many as --depth")
      ->capture_default_str();
  app.add_option("--redeliver", made.shape.redelivers, "1: forksight's queue delivers a dead consumer's message again");
  app.add_option("--touch", made.touches, "1: write and read each byte");
  app.add_option("--cpu-first", made.cpu[0], "CPU of the first process")->check(CLI::NonNegativeNumber);
  app.add_option("--cpu-second", made.cpu[1], "CPU of the second process")->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", made.seconds, "How long to measure")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--producers", made.producers, "Processes that send, for `crowd`");
  app.add_option("--consumers", made.consumers, "Processes that receive, for `crowd`");
  app.add_option("--kill", made.victim, "Which process `crowd` kills")->check(CLI::IsMember({"producer", "consumer"}));
  app.add_option("--seed", made.seed, "Seed of the instant at which `crowd` kills");
  try {
    app.parse(argc, argv);
    if (!lists && made.transport.empty()) throw CLI::RequiredError("--transport");
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  if (lists) {
    list();
    std::exit(0);
  }
  made.shape.spin_us = spin_us == "ever" ? kSpinsForEver : static_cast<unsigned>(std::stoul(spin_us));
  return made;
}

}  // namespace forksight::bench
