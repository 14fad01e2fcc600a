// Walks the same stacks with forksight's unwinder, with libunwind's remote interface and with libdw's unwinder.
// Compares the results frame by frame. The stacks were recorded by programs of the tests (whole, cut, frozen), or
// belong to live processes and cores.
//
//   bench_unwinders [--names N] [PID or CORE ...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <map>

#include "image/core.hpp"
#include "image/live.hpp"
#include "symbols/dump.hpp"
#include "walkers.hpp"

namespace forksight::bench {
namespace {

using symbols::WalkEnd;

// The stacks of one process image.
struct Process {
  std::vector<symbols::Module> modules;
  std::deque<Subject> subjects;
  std::deque<std::vector<std::byte>> bytes;  // memory that the subjects point into
  std::shared_ptr<const image::Memory> memory;
  std::unique_ptr<symbols::WordReader> any_word;
};

struct Group {
  std::string name;
  std::deque<Process> processes;
};

struct Count {
  int equal = 0;
  int shorter = 0;    // the walk lacks frames at the outer end
  int longer = 0;     // the walk has more frames than forksight's
  int different = 0;  // a frame differs
  int end = 0;        // the frames are the same, but the walkers disagree whether they are the whole stack
  std::map<std::string, int> names;
};

void compare(const std::string& name, const Answer& truth, const Answer& answer, Count& count) {
  const auto [a, b] = std::ranges::mismatch(truth.pcs, answer.pcs);
  const bool is_other = a != truth.pcs.end() && b != answer.pcs.end();
  const char* what = nullptr;
  if (is_other) {
    ++count.different, what = "different";
  } else if (a != truth.pcs.end()) {
    ++count.shorter, what = "shorter";
  } else if (b != answer.pcs.end()) {
    ++count.longer, what = "longer";
  } else if (truth.end != answer.end) {
    ++count.end, what = "end";
  } else {
    ++count.equal;
  }
  if (what != nullptr) ++count.names[fmt::format("{} {}", what, name)];
}

using Make = std::unique_ptr<Walker> (*)(const std::vector<symbols::Module>&);
struct Candidate {
  const char* name;
  Make make;
};
constexpr Candidate kCandidates[] = {{"own", make_own}, {"libunwind", make_libunwind}, {"libdw", make_libdw}};
constexpr std::size_t kRounds = 15;

// Returns the processor time of `work`. Wall-clock time would include the work of other programs.
double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void report(const Group& group, std::size_t names) {
  std::map<std::string, Count> counts;
  std::map<std::string, std::vector<double>> fresh;  // with a new walker for each process, as `why` needs
  std::map<std::string, std::vector<double>> again;  // with a walker that has walked these stacks before
  std::size_t stacks = 0;
  std::size_t frames = 0;
  std::map<std::string, std::vector<std::unique_ptr<Walker>>> walkers;
  for (const Candidate& candidate : kCandidates) {
    for (const Process& process : group.processes) walkers[candidate.name].push_back(candidate.make(process.modules));
  }
  for (std::size_t i = 0; i < group.processes.size(); ++i) {
    for (const Subject& subject : group.processes[i].subjects) {
      const Answer truth = walkers["own"][i]->walk(subject);
      ++stacks;
      frames += truth.pcs.size();
      for (const Candidate& candidate : kCandidates) {
        compare(subject.name, truth, walkers[candidate.name][i]->walk(subject), counts[candidate.name]);
      }
    }
  }
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t at = 0; at < std::size(kCandidates); ++at) {
      const Candidate& candidate = kCandidates[(at + round) % std::size(kCandidates)];
      fresh[candidate.name].push_back(seconds([&] {
        for (const Process& process : group.processes) {
          const auto walker = candidate.make(process.modules);
          for (const Subject& subject : process.subjects) walker->walk(subject);
        }
      }));
      again[candidate.name].push_back(seconds([&] {
        for (std::size_t i = 0; i < group.processes.size(); ++i) {
          for (const Subject& subject : group.processes[i].subjects) walkers[candidate.name][i]->walk(subject);
        }
      }));
    }
  }
  fmt::print("{}: {} stacks of {} processes, {} frames\n", group.name, stacks, group.processes.size(), frames);
  for (const Candidate& candidate : kCandidates) {
    const Count& count = counts[candidate.name];
    fmt::print(
        "  {:9} equal {:5}  different {:4}  shorter {:4}  longer {:4}  end {:4}   fresh {:6.2f}  again {:6.2f}\n",
        candidate.name, count.equal, count.different, count.shorter, count.longer, count.end,
        median(fresh[candidate.name]) / median(fresh["own"]), median(again[candidate.name]) / median(again["own"]));
    std::size_t said = 0;
    for (const auto& [name, times] : count.names) {
      if (said++ < names) fmt::print("      {}{}\n", name, times > 1 ? fmt::format(" ({} times)", times) : "");
    }
  }
}

Subject recorded(const std::string& name, const symbols::StackSample& sample) {
  Subject subject;
  subject.name = name;
  subject.registers[symbols::kReturnAddress] = sample.pc;
  subject.registers[symbols::kRsp] = sample.sp;
  subject.registers[symbols::kRbp] = sample.fp;
  subject.stack = {sample.sp, sample.memory};
  subject.is_frozen = sample.frozen;
  subject.is_cut = sample.cut;
  return subject;
}

void add_recorded(std::deque<Group>& groups) {
  Group whole{"recorded", {}};
  Group stripped{"recorded, stripped", {}};
  Group cut{"recorded, cut after 0 to 504 bytes", {}};
  Group frozen{"recorded, frozen", {}};
  std::vector<std::string> fixtures = symbols::fixtures_with_debug_information();
  fixtures.push_back("stripped");
  for (const std::string& fixture : fixtures) {
    for (const char* program : {"scenes", "locks"}) {
      const symbols::Dump dump = symbols::run_fixture(fixture, program);
      Group& straight = fixture == "stripped" ? stripped : whole;
      Process* const at_once = &straight.processes.emplace_back(Process{dump.modules, {}, {}, nullptr, nullptr});
      Process* const in_part = &cut.processes.emplace_back(Process{dump.modules, {}, {}, nullptr, nullptr});
      Process* const later = &frozen.processes.emplace_back(Process{dump.modules, {}, {}, nullptr, nullptr});
      for (const auto& [label, stack] : dump.stacks) {
        Process* const process = stack.sample.frozen ? later : at_once;
        symbols::StackSample sample = stack.sample;
        sample.memory = process->bytes.emplace_back(stack.bytes);
        process->subjects.push_back(recorded(fixture + "/" + label, sample));
        if (sample.frozen || fixture == "stripped") continue;
        const auto& bytes = in_part->bytes.emplace_back(stack.bytes);
        for (std::size_t size = 0; size < 512 && size < bytes.size(); size += 8) {
          sample.memory = std::span(bytes).first(size);
          sample.cut = true;
          in_part->subjects.push_back(recorded(fixture + "/" + label, sample));
        }
      }
    }
  }
  for (Group* group : {&whole, &stripped, &cut, &frozen}) {
    std::erase_if(group->processes, [](const Process& process) { return process.subjects.empty(); });
    groups.push_back(std::move(*group));
  }
}

void add_image(const image::Image& image, bool has_all_registers, Group& group) {
  constexpr std::size_t kStackBytes = 64U << 10U;
  Process& process = group.processes.emplace_back();
  process.modules = image.modules;
  process.memory = image.memory;
  process.any_word = std::make_unique<symbols::WordReader>(
      [memory = image.memory.get()](std::uint64_t address) { return memory->value<std::uint64_t>(address); });
  for (const image::Thread& thread : image.threads) {
    if (!thread.registers || !(*thread.registers)[symbols::kRsp]) continue;
    Subject subject;
    subject.name = fmt::format("{}/{}", image.exe.substr(image.exe.rfind('/') + 1), thread.name);
    subject.registers = *thread.registers;
    if (!has_all_registers) {
      subject.registers = {};
      subject.registers[symbols::kRsp] = (*thread.registers)[symbols::kRsp];
      subject.registers[symbols::kReturnAddress] = (*thread.registers)[symbols::kReturnAddress];
    }
    subject.is_exact = true;
    const std::uint64_t sp = *subject.registers[symbols::kRsp];
    const proc::Mapping* const mapping = image.mapping_of(sp);
    const std::size_t size = mapping == nullptr ? 0 : std::min<std::uint64_t>(mapping->end - sp, kStackBytes);
    subject.stack = {sp, process.bytes.emplace_back(image.memory->bytes(sp, size)), process.any_word.get()};
    process.subjects.push_back(std::move(subject));
  }
}

int run(int argc, char** argv) {
  std::size_t names = 100;
  std::deque<Group> groups;
  add_recorded(groups);
  Group stopped{"live and cores, all registers", {}};
  Group running{"live and cores, pc and rsp alone", {}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--names" && i + 1 < argc) {
      names = std::strtoul(argv[++i], nullptr, 10);
      continue;
    }
    const bool is_pid = argument.find_first_not_of("0123456789") == std::string::npos;
    const auto image = is_pid ? image::open_live(std::atoi(argument.c_str())) : image::open_core(argument, {});
    if (!image) {
      fmt::print(stderr, "{}\n", image.error());
      return 1;
    }
    add_image(image.value(), true, stopped);
    add_image(image.value(), false, running);
  }
  for (Group* group : {&stopped, &running}) {
    if (!group->processes.empty()) groups.push_back(std::move(*group));
  }
  for (const Group& group : groups) report(group, names);
  fmt::print(
      "\"fresh\" and \"again\": the time as a ratio to that of forksight's own walker, the median of {} rounds\n",
      kRounds);
  return 0;
}

}  // namespace
}  // namespace forksight::bench

int main(int argc, char** argv) { return forksight::bench::run(argc, argv); }
