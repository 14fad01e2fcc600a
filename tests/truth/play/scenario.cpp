#include "scenario.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace truth {
namespace {

const std::map<std::string, ObjectKind> kKinds = {
    {"mutex", ObjectKind::kMutex},     {"rwlock", ObjectKind::kRwlock},   {"sem", ObjectKind::kSemaphore},
    {"cond", ObjectKind::kCondition},  {"barrier", ObjectKind::kBarrier}, {"word", ObjectKind::kWord},
    {"guard", ObjectKind::kGuard},     {"future", ObjectKind::kFuture},   {"pipe", ObjectKind::kPipe},
    {"fifo", ObjectKind::kFifo},       {"socket", ObjectKind::kSocket},   {"eventfd", ObjectKind::kEventfd},
    {"timerfd", ObjectKind::kTimerfd}, {"file", ObjectKind::kFile},       {"once", ObjectKind::kOnce},
    {"channel", ObjectKind::kChannel},
};

ObjectSpec object_from(const std::vector<std::string>& words) {
  ObjectSpec object{kKinds.at(words[0]), words.at(1), {}};
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "shared") {
      object.shared = true;
    } else if (words[i] == "at") {
      object.at = words.at(++i);
    } else if (std::isdigit(static_cast<unsigned char>(words[i][0])) != 0) {
      object.number = std::stoi(words[i]);
    } else {
      object.attributes.push_back(words[i]);
    }
  }
  return object;
}

int thread_index(Scenario& scenario, const std::string& name) {
  const auto found = std::find(scenario.threads.begin(), scenario.threads.end(), name);
  if (found != scenario.threads.end()) return static_cast<int>(found - scenario.threads.begin());
  scenario.threads.push_back(name);
  return static_cast<int>(scenario.threads.size()) - 1;
}

Step step_from(Scenario& scenario, const std::vector<std::string>& words) {
  Step step;
  step.thread = thread_index(scenario, words[0]);
  size_t next = 1;
  if (words.at(next) == "!") {
    step.begins = true;
    ++next;
  }
  step.operation = words.at(next);
  step.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(next) + 1, words.end());
  if (step.operation == "create" || step.operation == "fork") thread_index(scenario, step.arguments.at(0));
  return step;
}

}  // namespace

bool ObjectSpec::has(const char* attribute) const {
  return std::find(attributes.begin(), attributes.end(), attribute) != attributes.end();
}

int Scenario::thread_of(const std::string& name) const {
  const auto found = std::find(threads.begin(), threads.end(), name);
  if (found == threads.end()) fail("no thread " + name);
  return static_cast<int>(found - threads.begin());
}

int Scenario::object_of(const std::string& name) const {
  for (size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].name == name) return static_cast<int>(i);
  }
  fail("no object " + name);
}

Scenario read_scenario(const char* path) {
  std::ifstream file(path);
  if (!file) fail(std::string("cannot read ") + path);
  Scenario scenario;
  scenario.threads.emplace_back("main");
  scenario.forced = -1;
  bool in_steps = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word && word[0] != '#';) words.push_back(word);
    if (words.empty()) continue;
    if (words[0] == "--") {
      in_steps = true;
    } else if (words[0] == "free") {
      scenario.forced = static_cast<int>(scenario.steps.size());
    } else if (in_steps) {
      scenario.steps.push_back(step_from(scenario, words));
    } else {
      scenario.objects.push_back(object_from(words));
    }
  }
  if (scenario.forced < 0) scenario.forced = static_cast<int>(scenario.steps.size());
  return scenario;
}

void fail(const std::string& message) {
  std::fprintf(stderr, "truth_play: %s\n", message.c_str());
  _exit(99);
}

}  // namespace truth
