#include "collect/name_waits.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "symbols/symbols.hpp"

namespace forksight::collect {

void name_waits(const files::Owner& owner, model::Model& model) {
  using symbols::Symbolizer;
  // Many waits are for futex words in the same few modules. So all waits of a module use one symbolizer.
  std::map<std::pair<std::string, std::uint64_t>, std::unique_ptr<Symbolizer>> by_module;
  for (model::Process& process : model.processes) {
    for (model::Wait& wait : process.waits) {
      if (wait.object_module.empty() || !wait.object_name.empty() || wait.object < wait.module_bias) continue;
      auto& symbolizer = by_module[{wait.object_module, wait.module_bias}];
      if (symbolizer == nullptr) {
        symbols::Module module;
        module.path = wait.object_module;
        module.bias = wait.module_bias;
        module.owner = owner;
        module.start = wait.module_bias;
        // The end of the module is not known here. It is not needed: whoever filled `wait` has already checked that the
        // address is in this module.
        module.end = UINT64_MAX;
        symbolizer = std::make_unique<Symbolizer>(std::vector{std::move(module)});
      }
      symbols::DataSymbol symbol;
      if (symbolizer->find_data(wait.object, symbol)) wait.object_name = std::move(symbol.name);
    }
  }
}

}  // namespace forksight::collect
