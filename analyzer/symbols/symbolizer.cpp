#include "symbols/symbols.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <utility>

#include "files/costly_files.hpp"
#include "symbols/address_space.hpp"
#include "symbols/binary_store.hpp"
#include "symbols/frozen.hpp"
#include "symbols/imports.hpp"
#include "symbols/last_calls.hpp"
#include "symbols/names.hpp"
#include "symbols/stack_references.hpp"
#include "symbols/thread_walk.hpp"
#include "symbols/unwinder.hpp"

namespace forksight::symbols {
namespace {

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_shim(const std::string& path) { return file_name(path) == "libforksight.so"; }

// True for libc, the loader, libpthread before glibc 2.34, and the vDSO.
bool is_libc(const std::string& path) {
  const std::string_view name = file_name(path);
  for (const std::string_view prefix : {"libc.so", "libc-", "ld-linux", "ld-2", "libpthread", "linux-vdso", "[vdso]"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// True for libraries that distributions strip, and whose inner functions say nothing about the program. Missing names
// in these libraries are not reported.
bool is_runtime(const std::string& path) {
  const std::string_view name = file_name(path);
  for (const std::string_view prefix : {"libc.so", "libc-", "ld-linux", "libpthread", "libstdc++", "libc++", "libgcc_s",
                                        "libgomp", "libomp", "libiomp5"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

struct Symbolizer::State {
  explicit State(std::vector<Module> modules) : space(std::move(modules)) {}

  std::vector<model::Frame> name(const RawFrame& raw);
  model::Stack name(const Walk& walk);
  std::string callee_of(std::uint64_t return_address);
  std::optional<StackReference> find_reference(const KnownWalk& known, const StackBytes& stack, std::uint64_t address);

  AddressSpace space;
  std::unordered_map<std::uint64_t, std::vector<model::Frame>> named;  // by look-up address
};

// Returns the frames of the model for one frame of the machine. Returns none for a frame of the shim.
std::vector<model::Frame> Symbolizer::State::name(const RawFrame& raw) {
  const std::uint64_t address = raw.lookup_address();
  const auto [entry, is_new] = named.try_emplace(address);
  std::vector<model::Frame>& frames = entry->second;
  if (!is_new) return frames;
  const AddressSpace::Place place = space.locate(address);
  if (place.module != nullptr && is_shim(place.module->path)) return frames;
  model::Frame frame;
  if (place.module != nullptr) {
    frame.module = place.module->path;
    frame.offset = address - place.module->bias;
  }
  if (!place) {
    frames.push_back(std::move(frame));
    return frames;
  }
  for (const SourceFrame& source : place.binary->frames_at(place.address)) {
    frame.function = source.function;
    frame.file = source.file;
    frame.line = source.line;
    frame.inlined = source.inlined;
    frames.push_back(frame);
  }
  if (frames.back().function.empty() && !is_runtime(place.module->path)) {
    space.add_limit(fmt::format("{}: is stripped: some of its functions have no names", place.module->path));
  }
  return frames;
}

model::Stack Symbolizer::State::name(const Walk& walk) {
  model::Stack stack;
  for (std::size_t i = 0; i < walk.frames.size(); ++i) {
    const RawFrame& raw = walk.frames[i];
    std::vector<model::Frame> frames = name(raw);
    // A signal handler returns to libc's trampoline. Nobody called the trampoline, so its frame gets the name of a
    // signal frame.
    if (i + 1 < walk.frames.size() && walk.frames[i + 1].is_exact && !frames.empty()) {
      frames.erase(frames.begin(), frames.end() - 1);
      frames.back().function = model::kSignalFrame;
      if (!raw.is_exact) ++frames.back().offset;  // there is no call before the trampoline's first instruction
      frames.back().file.clear();
      frames.back().line = 0;
    }
    if (raw.is_line_unknown && !frames.empty()) {
      // the place in the function is not known, so the inlined call is not known either
      frames.erase(frames.begin(), frames.end() - 1);
      frames.back().line = 0;
    }
    for (model::Frame& frame : frames) {
      frame.approximate = raw.is_approximate;
      stack.frames.push_back(std::move(frame));
    }
  }
  stack.cut = walk.end != WalkEnd::kThreadStart;
  return stack;
}

std::string Symbolizer::State::callee_of(std::uint64_t return_address) {
  if (return_address == 0) return {};
  const AddressSpace::Place place = space.locate(return_address - 1);
  if (!place) return {};
  const auto call = place.binary->code().call_before(place.address + 1);
  if (!call) return {};
  if (call->name != nullptr) return call->name;
  const Symbol* const symbol = place.binary->symbols().find_function(call->target);
  return symbol != nullptr && symbol->start == call->target ? symbol->name : std::string();
}

std::optional<StackReference> Symbolizer::State::find_reference(const KnownWalk& known, const StackBytes& stack,
                                                                std::uint64_t address) {
  const auto frame = find_referring_frame(space, known, stack, address);
  if (!frame) return std::nullopt;
  const auto split = known.walk.frames.begin() + static_cast<std::ptrdiff_t>(*frame);
  return StackReference{name(Walk{{known.walk.frames.begin(), split}, WalkEnd::kThreadStart}),
                        name(Walk{{split, known.walk.frames.end()}, known.walk.end}),
                        {}};
}

Symbolizer::Symbolizer(std::vector<Module> modules) : state_(std::make_unique<State>(std::move(modules))) {}
Symbolizer::~Symbolizer() = default;

model::Stack Symbolizer::unwind(const StackSample& sample) {
  const std::scoped_lock lock(binaries_mutex());
  if (sample.pc == 0) return {};
  Registers registers{};
  registers[kReturnAddress] = sample.pc;
  registers[kRsp] = sample.sp;
  registers[kRbp] = sample.fp;
  const StackBytes bytes{sample.sp, sample.memory};
  const Walk walk = sample.frozen ? walk_frozen(state_->space, registers, bytes, sample.cut)
                                  : Unwinder(state_->space).walk(registers, bytes, false);
  return state_->name(walk);
}

model::Stack Symbolizer::unwind_thread(const Registers& registers, const StackBytes& stack) {
  const std::scoped_lock lock(binaries_mutex());
  if (!registers[kReturnAddress] || !registers[kRsp]) return {};
  return state_->name(walk_thread(state_->space, registers, stack));
}

std::optional<StackReference> Symbolizer::find_reference(const Registers& registers, const StackBytes& stack,
                                                         std::uint64_t address) {
  const std::scoped_lock lock(binaries_mutex());
  if (!registers[kReturnAddress] || !registers[kRsp]) return std::nullopt;
  KnownWalk known;
  known.walk = Unwinder(state_->space).walk(registers, stack, false, true, &known.registers);
  return state_->find_reference(known, stack, address);
}

std::optional<StackReference> Symbolizer::find_frozen_reference(const StackBytes& stack, std::uint64_t address) {
  const std::scoped_lock lock(binaries_mutex());
  const auto known = find_last_calls(state_->space, stack);
  auto found = known ? state_->find_reference(*known, stack, address) : std::nullopt;
  if (found) found->last_call = readable_name(state_->callee_of(known->walk.frames.front().pc).c_str());
  return found;
}

bool Symbolizer::find_data(std::uint64_t address, DataSymbol& out) {
  const std::scoped_lock lock(binaries_mutex());
  const AddressSpace::Place place = state_->space.locate(address);
  if (!place) return false;
  const Symbol* symbol = place.binary->symbols().find_object(place.address);
  if (symbol == nullptr) return false;
  const files::FileWork work(place.module->path);
  out.name = readable_name(symbol->name);
  out.name += place.binary->variables().member_path(symbol->start, place.address - symbol->start);
  out.module = place.module->path;
  return true;
}

bool Symbolizer::find_code(std::uint64_t address, CodeSymbol& out) {
  const std::scoped_lock lock(binaries_mutex());
  const AddressSpace::Place place = state_->space.locate(address);
  if (!place) return false;
  std::string function = place.binary->frames_at(place.address).back().function;
  if (function.empty()) return false;
  out.function = std::move(function);
  out.module = place.module->path;
  return true;
}

std::optional<std::uint64_t> Symbolizer::find_symbol(std::string_view name, std::string_view file_prefix) {
  const std::scoped_lock lock(binaries_mutex());
  for (std::size_t i = 0; i < state_->space.size(); ++i) {
    const Module& module = state_->space.module(i);
    if (!file_name(module.path).starts_with(file_prefix)) continue;
    Binary* const binary = state_->space.binary(i);
    if (binary == nullptr) continue;
    const Symbol* symbol = binary->symbols().find_function_named(name);
    if (symbol == nullptr) symbol = binary->symbols().find_object_named(name);
    if (symbol != nullptr) return module.bias + symbol->start;
  }
  return std::nullopt;
}

bool Symbolizer::may_import(std::span<const std::string_view> names) {
  const std::scoped_lock lock(binaries_mutex());
  for (std::size_t i = 0; i < state_->space.size(); ++i) {
    const std::string& path = state_->space.module(i).path;
    if (is_libc(path) || is_shim(path)) continue;
    const files::FileWork work(path);
    Binary* const binary = state_->space.binary(i);
    if (binary == nullptr || symbols::may_import(binary->elf(), names)) return true;
  }
  return false;
}

std::string Symbolizer::find_callee(std::uint64_t return_address) {
  const std::scoped_lock lock(binaries_mutex());
  return state_->callee_of(return_address);
}

std::vector<std::string> Symbolizer::limits() const {
  const std::scoped_lock lock(binaries_mutex());
  return state_->space.limits();
}

}  // namespace forksight::symbols
