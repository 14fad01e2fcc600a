#include "collect/name_waits.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "symbols/symbols.hpp"

namespace forksight::collect {

void name_waits(model::Model& model) {
  using symbols::Symbolizer;
  // One symbolizer for each module, because many threads wait for the same few locks.
  std::map<std::pair<std::string, std::uint64_t>, std::unique_ptr<Symbolizer>> by_module;
  for (model::Process& process : model.processes) {
    for (model::Wait& wait : process.waits) {
      if (wait.object_module.empty() || !wait.object_name.empty() || wait.object < wait.module_bias) continue;
      auto& symbolizer = by_module[{wait.object_module, wait.module_bias}];
      if (symbolizer == nullptr) {
        symbols::Module module;
        module.path = wait.object_module;
        module.bias = wait.module_bias;
        module.start = wait.module_bias;
        // The range of addresses need not be checked: the look that noted the module found the address in it.
        module.end = UINT64_MAX;
        symbolizer = std::make_unique<Symbolizer>(std::vector{std::move(module)});
      }
      symbols::DataSymbol symbol;
      if (symbolizer->find_data(wait.object, symbol)) wait.object_name = std::move(symbol.name);
    }
  }
}

}  // namespace forksight::collect
