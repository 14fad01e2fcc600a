// The modules that the processes of one trace had at the time of each record. All processes share one list, until a
// process maps a module where another module was before. From then on it has a list of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/model.hpp"
#include "symbols/symbols.hpp"

namespace forksight::collect {

// Grows while the trace is read; no two modules overlap.
struct Image {
  std::vector<symbols::Module> modules;

  // The path of the module that contains an address, or that is mapped at a bias; "" for none.
  std::string find_path(std::uint64_t address) const;
  std::string find_path_by_bias(std::uint64_t bias) const;
};
using ImagePtr = std::shared_ptr<Image>;

class ModuleMap {
 public:
  const ImagePtr& image_of(model::ProcessId process);
  // From here on `child` has the modules of `parent`.
  void inherit(model::ProcessId child, model::ProcessId parent);
  // False: the module was left out, because the trace names more than any process can have.
  bool add(model::ProcessId process, symbols::Module module);

 private:
  static constexpr std::size_t kMaxModules = 8192;
  static constexpr std::size_t kMaxImages = 256;

  std::unordered_map<model::ProcessId, ImagePtr> images_;
  std::size_t copies_ = 0;
};

}  // namespace forksight::collect
