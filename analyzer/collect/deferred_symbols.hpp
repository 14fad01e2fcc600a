// Collects addresses while a trace is read. Looks up the names of these addresses when the whole trace has been read.
// By then the lists of modules are complete. Each ELF file is opened only once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collect/module_map.hpp"
#include "collect/trace_budget.hpp"
#include "collect/trace_file.hpp"
#include "model/model.hpp"

namespace forksight::collect {

class DeferredSymbols {
 public:
  template <class T>
  // A Place returns the member of the model that is to get a name or a stack. A Place is a function and not a
  // reference, because references become invalid when the model's vectors grow.
  using Place = std::function<T&(model::Model&)>;

  // `record` is a kStack record of a file that outlives this object.
  void add_stack(ImagePtr image, const TraceRecord& record, Place<model::Stack> place);
  void add_code(ImagePtr image, std::uint64_t address, Place<std::string> function);
  // `module` may be empty.
  void add_data(ImagePtr image, std::uint64_t address, Place<std::string> name, Place<std::string> module);

  // Fills in all members of the model for which a Place was added. If names cannot be found, adds sentences about them
  // to model.limits. `budget` may be null. Returns false if names or stacks were left out because of the budget.
  bool resolve(model::Model& model, TraceBudget* budget);

 private:
  struct StackTask {
    ImagePtr image;
    TraceRecord record;
    Place<model::Stack> place;
  };
  struct CodeTask {
    ImagePtr image;
    std::uint64_t address;
    Place<std::string> function;
  };
  struct DataTask {
    ImagePtr image;
    std::uint64_t address;
    Place<std::string> name;
    Place<std::string> module;
  };
  std::vector<StackTask> stacks_;
  std::vector<CodeTask> code_;
  std::vector<DataTask> data_;
};

}  // namespace forksight::collect
