// Runs fork tests: programs made with <forksight/fork_test.h>, which test whether forked children can use a library. A
// scene is one way to use the library around a fork. Each scene runs under `forksight run` without cures. The judgement
// depends on how the scene ends and on what forksight finds.
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
  std::string what;  // what the scene tests, as the program describes it
};

struct SceneResult {
  Scene scene;
  bool is_good = false;
  std::vector<std::string> lines;  // what went wrong, and what to do; empty if all went well
  std::string command;             // the command that repeats this scene
  double seconds = 0;
};

struct CheckOptions {
  std::filesystem::path forksight;
  std::filesystem::path folder;  // must exist; each scene gets a folder in it
  std::string fail_on = "likely";
  std::chrono::milliseconds limit{60'000};  // for one scene
};

// Returns the scenes of `command`. An error if `command` is not a fork test.
Result<std::vector<Scene>> list_scenes(const std::vector<std::string>& command, const CheckOptions& options);

// Runs one scene. The calling process must be a subreaper without children. In the end, the function kills all
// descendants of the calling process, so no process is left behind. If `scene` has no name, the function runs `command`
// without telling it which scene to play.
SceneResult play_scene(const std::vector<std::string>& command, const Scene& scene, const CheckOptions& options);

}  // namespace forksight::suite
