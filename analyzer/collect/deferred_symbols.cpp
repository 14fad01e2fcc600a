#include "collect/deferred_symbols.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "model/stack_bytes.hpp"

namespace forksight::collect {

namespace {

using symbols::Symbolizer;

class Symbolizers {
 public:
  Symbolizer& of(const ImagePtr& image) {
    auto& symbolizer = by_image_[image.get()];
    if (symbolizer == nullptr) symbolizer = std::make_unique<Symbolizer>(image->modules);
    return *symbolizer;
  }
  void append_limits(std::vector<std::string>& limits) const {
    std::set<std::string> said(limits.begin(), limits.end());
    for (const auto& [image, symbolizer] : by_image_) {
      for (const std::string& limit : symbolizer->limits()) {
        if (said.insert(limit).second) limits.push_back(limit);
      }
    }
  }

 private:
  std::map<const Image*, std::unique_ptr<Symbolizer>> by_image_;
};

model::Stack unwind(Symbolizer& symbolizer, const TraceRecord& record) {
  const auto fixed = record.fixed<trace::StackRecord>();
  symbols::StackSample sample;
  sample.pc = fixed.pc;
  sample.sp = fixed.sp;
  sample.fp = fixed.fp;
  sample.memory = record.tail<trace::StackRecord>().first(fixed.bytes);
  sample.cut = (fixed.flags & trace::kStackCut) != 0;
  sample.frozen = (fixed.flags & trace::kStackFrozen) != 0;
  return symbolizer.unwind(sample);
}

std::string_view as_key(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void DeferredSymbols::add_stack(ImagePtr image, const TraceRecord& record, Place<model::Stack> place) {
  stacks_.push_back({std::move(image), record, std::move(place)});
}

void DeferredSymbols::add_code(ImagePtr image, std::uint64_t address, Place<std::string> function) {
  code_.push_back({std::move(image), address, std::move(function)});
}

void DeferredSymbols::add_data(ImagePtr image, std::uint64_t address, Place<std::string> name,
                               Place<std::string> module) {
  data_.push_back({std::move(image), address, std::move(name), std::move(module)});
}

bool DeferredSymbols::resolve(model::Model& model, TraceBudget* budget) {
  bool has_all = true;
  const auto may_keep = [&](std::size_t bytes) {
    const bool is_allowed = budget == nullptr || budget->allows_name(bytes);
    has_all = has_all && is_allowed;
    return is_allowed;
  };
  Symbolizers symbolizers;
  // A server forks at the same place again and again. So stacks with equal bytes are unwound only once.
  struct Unwound {
    model::Stack stack;
    std::size_t bytes = 0;
  };
  std::map<std::pair<const Image*, std::string_view>, Unwound> unwound;
  std::vector<const StackTask*> repeated;
  for (const StackTask& task : stacks_) {
    const auto [at, is_new] = unwound.try_emplace({task.image.get(), as_key(task.record.payload)});
    if (!is_new) {
      repeated.push_back(&task);
      continue;
    }
    model::Stack stack = unwind(symbolizers.of(task.image), task.record);
    const std::size_t bytes = model::bytes_of(stack);
    if (!may_keep(bytes)) continue;
    at->second = {stack, bytes};
    task.place(model) = std::move(stack);
  }
  for (const CodeTask& task : code_) {
    symbols::CodeSymbol symbol;
    if (symbolizers.of(task.image).find_code(task.address, symbol) && may_keep(model::bytes_of(symbol.function)))
      task.function(model) = std::move(symbol.function);
  }
  for (const DataTask& task : data_) {
    symbols::DataSymbol symbol;
    if (!symbolizers.of(task.image).find_data(task.address, symbol)) continue;
    if (!may_keep(model::bytes_of(symbol.name) + model::bytes_of(symbol.module))) continue;
    task.name(model) = std::move(symbol.name);
    if (task.module) task.module(model) = std::move(symbol.module);
  }
  // The copies come last. So if the budget does not suffice for them, each stack is kept at least in one place.
  for (const StackTask* task : repeated) {
    const auto& [stack, bytes] = unwound.at({task->image.get(), as_key(task->record.payload)});
    if (may_keep(bytes)) task->place(model) = stack;
  }
  symbolizers.append_limits(model.limits);
  return has_all;
}

}  // namespace forksight::collect
