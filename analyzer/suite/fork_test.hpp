// Fork tests of other people's libraries: programs that <forksight/fork_test.h> made. Each scene is played under
// `forksight run`, which cures nothing, and judged by how it ends and what is found.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

struct Scene {
  std::string name;
  std::string what;  // in the program's words
};

struct SceneResult {
  Scene scene;
  bool is_good = false;
  std::vector<std::string> lines;  // what went wrong, and what to do; empty if nothing did
  std::string command;             // plays it again
  double seconds = 0;
};

struct CheckOptions {
  std::filesystem::path forksight;
  std::filesystem::path folder;  // exists; each scene has a folder of its own in it
  std::string fail_on = "likely";
  std::chrono::milliseconds limit{60'000};  // of a scene
};

// The scenes that `command` has; an error if it is no fork test.
Result<std::vector<Scene>> list_scenes(const std::vector<std::string>& command, const CheckOptions& options);

// To be called in a process that is a reaper and has no other children. Nothing is left behind. A scene without a name:
// the program as it is.
SceneResult play_scene(const std::vector<std::string>& command, const Scene& scene, const CheckOptions& options);

}  // namespace forksight::suite
