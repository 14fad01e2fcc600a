// The modules that the processes of one trace had at the time of each record. All processes share one list of modules,
// until a process maps a module at addresses where another module was before. From then on, this process has a list of
// its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/model.hpp"
#include "symbols/symbols.hpp"

namespace forksight::collect {

// The list of modules grows while the trace is read. No two modules overlap.
struct Image {
  std::vector<symbols::Module> modules;

  // find_path() returns the path of the module that contains an address. find_path_by_bias() returns the path of the
  // module with this load bias. "": there is no such module.
  std::string find_path(std::uint64_t address) const;
  std::string find_path_by_bias(std::uint64_t bias) const;
};
using ImagePtr = std::shared_ptr<Image>;

class ModuleMap {
 public:
  const ImagePtr& image_of(model::ProcessId process);
  // From here on, `child` has the modules that `parent` has now.
  void inherit(model::ProcessId child, model::ProcessId parent);
  // Returns false if the module was left out: the trace names more modules than any process can have, or replaces
  // modules at the same addresses too often.
  bool add(model::ProcessId process, symbols::Module module);

 private:
  static constexpr std::size_t kMaxModules = 8192;
  static constexpr std::size_t kMaxImages = 256;

  std::unordered_map<model::ProcessId, ImagePtr> images_;
  std::size_t copies_ = 0;
};

}  // namespace forksight::collect
