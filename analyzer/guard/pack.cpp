#include "guard/pack.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "enumerators.hpp"
#include "model/members.hpp"

namespace forksight::guard {
namespace {

template <class T>
constexpr bool kIsList = false;
template <class T>
constexpr bool kIsList<std::vector<T>> = true;
template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

class Packer {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      put_count(value.size());
      bytes_ += value;
    } else if constexpr (kIsList<T>) {
      put_count(value.size());
      for (const auto& item : value) put(item);
    } else if constexpr (kIsOptional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (std::is_array_v<T>) {
      for (const auto& item : value) put(item);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      model::for_each_member(value, [this](const auto& member) { put(member); });
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  void put_count(std::size_t count) { put(std::uint64_t{count}); }

  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = take(get_count());
    } else if constexpr (kIsList<T>) {
      // The list grows only as long as there are bytes, whatever the count claims.
      for (std::size_t left = get_count(); left > 0 && is_well_; --left) get(value.emplace_back());
    } else if constexpr (kIsOptional<T>) {
      bool has_value = false;
      get(has_value);
      if (has_value) get(value.emplace());
    } else if constexpr (std::is_array_v<T>) {
      for (auto& item : value) get(item);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      get(byte);
      is_well_ = is_well_ && byte <= 1;
      value = byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      get(number);
      is_well_ = is_well_ && number >= 0 && !name_of_value<T>(static_cast<std::uint64_t>(number)).empty();
      if (is_well_) value = static_cast<T>(number);
    } else if constexpr (std::is_arithmetic_v<T>) {
      const std::string_view bytes = take(sizeof value);
      if (is_well_) std::memcpy(&value, bytes.data(), sizeof value);
    } else {
      model::for_each_member(value, [this](auto& member) { get(member); });
    }
  }
  bool is_whole() const { return is_well_ && rest_.empty(); }

 private:
  std::size_t get_count() {
    std::uint64_t count = 0;
    get(count);
    is_well_ = is_well_ && count <= rest_.size();  // each item has at least one byte
    return is_well_ ? count : 0;
  }
  std::string_view take(std::size_t size) {
    is_well_ = is_well_ && size <= rest_.size();
    if (!is_well_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool is_well_ = true;
};

bool is_index(std::size_t id, std::size_t size) { return id < size; }
bool is_index(const std::optional<std::size_t>& id, std::size_t size) { return !id || *id < size; }
bool is_index(const std::vector<std::size_t>& ids, std::size_t size) {
  return std::ranges::all_of(ids, [&](std::size_t id) { return id < size; });
}

// Each id in a model is an index of one of the model's lists. These are the sizes of those lists.
struct Sizes {
  std::size_t processes, threads, locks, pools, forks, python, handlers, lives;
};

bool is_valid(const model::Fork& fork, const Sizes& of) {
  return is_index(fork.process, of.processes) && is_index(fork.child, of.processes) &&
         is_index(fork.forking_thread, of.threads) && is_index(fork.lost_threads, of.threads) &&
         is_index(fork.ended_in_prepare, of.threads) && is_index(fork.pools, of.pools) &&
         is_index(fork.python, of.python) &&
         std::ranges::all_of(fork.lost_waits, [&](const auto& wait) { return is_index(wait.thread, of.threads); }) &&
         std::ranges::all_of(fork.thread_pools, [&](const auto& pool) { return is_index(pool.threads, of.threads); }) &&
         std::ranges::all_of(fork.handlers, [&](const auto& time) { return is_index(time.handlers, of.handlers); }) &&
         std::ranges::all_of(fork.calls, [&](const auto& call) { return is_index(call.thread, of.threads); }) &&
         std::ranges::all_of(fork.streams, [&](const auto& stream) { return is_index(stream.thread, of.threads); }) &&
         std::ranges::all_of(fork.held, [&](const auto& held) {
           return is_index(held.lock, of.locks) && is_index(held.holder, of.threads);
         });
}

bool is_valid(const model::HandlerRun& run, const Sizes& of) {
  return is_index(run.process, of.processes) && is_index(run.fork, of.forks) && is_index(run.thread, of.threads) &&
         is_index(run.handlers, of.handlers) &&
         std::ranges::all_of(run.waits, [&](const auto& wait) { return is_index(wait.owner, of.threads); });
}

bool is_valid(const model::Touch& touch, const Sizes& of, const std::vector<model::Fork>& forks) {
  return is_index(touch.fork, of.forks) && is_index(touch.process, of.processes) && is_index(touch.pool, of.pools) &&
         is_index(touch.held, forks[touch.fork].held.size()) &&
         is_index(touch.in_flight, forks[touch.fork].calls.size()) &&
         std::ranges::all_of(touch.lock_references, [&](const auto& one) { return is_index(one.thread, of.threads); });
}

bool is_valid(const model::ThreadLife& life, const Sizes& of) {
  return is_index(life.process, of.processes) && is_index(life.creator, of.lives) && is_index(life.joiner, of.lives);
}

bool is_valid(const model::LockOrder& order, const Sizes& of) {
  return is_index(order.life, of.lives) && is_index(order.thread, of.threads) && is_index(order.held, of.locks) &&
         is_index(order.taken, of.locks);
}

bool is_valid(const model::RacyTouch& touch, const Sizes& of) {
  return is_index(touch.fork, of.forks) && is_index(touch.process, of.processes) && is_index(touch.lock, of.locks) &&
         is_index(touch.holder, of.threads);
}

// Checks the ids of a Flush, ShareUse, Draw or FileLockUse: its process and, if there is one, its fork.
template <class Use>
bool is_use_valid(const Use& use, const Sizes& of) {
  return is_index(use.process, of.processes) && is_index(use.fork, of.forks);
}

}  // namespace

bool are_ids_valid(const model::Model& model) {
  const Sizes of{model.processes.size(), model.threads.size(), model.locks.size(),    model.pools.size(),
                 model.forks.size(),     model.python.size(),  model.handlers.size(), model.lives.size()};
  const auto all = [](const auto& list, const auto& is_good) { return std::ranges::all_of(list, is_good); };
  return all(model.processes,
             [&](const model::Process& process) {
               return is_index(process.waits_for, of.processes) && is_index(process.python, of.python);
             }) &&
         all(model.threads, [&](const model::Thread& thread) { return is_index(thread.process, of.processes); }) &&
         all(model.pools, [&](const model::Pool& pool) { return is_index(pool.workers, of.threads); }) &&
         all(model.forks, [&](const model::Fork& fork) { return is_valid(fork, of); }) &&
         all(model.handler_runs, [&](const model::HandlerRun& run) { return is_valid(run, of); }) &&
         all(model.touches, [&](const model::Touch& touch) { return is_valid(touch, of, model.forks); }) &&
         all(model.vfork_exits, [&](const model::VforkExit& end) { return is_index(end.process, of.processes); }) &&
         all(model.unflushed,
             [&](const model::UnflushedOutput& output) {
               return is_index(output.fork, of.forks) &&
                      all(output.flushes, [&](const model::Flush& flush) { return is_use_valid(flush, of); });
             }) &&
         all(model.shares,
             [&](const model::Share& share) {
               return is_index(share.fork, of.forks) && is_index(share.owner, of.processes) &&
                      all(share.uses, [&](const model::ShareUse& use) { return is_use_valid(use, of); });
             }) &&
         all(model.draws, [&](const model::Draw& draw) { return is_use_valid(draw, of); }) &&
         all(model.cuda_ipc, [&](const model::CudaIpcCall& call) { return is_index(call.process, of.processes); }) &&
         all(model.file_lock_uses, [&](const model::FileLockUse& use) { return is_use_valid(use, of); }) &&
         all(model.lives, [&](const model::ThreadLife& life) { return is_valid(life, of); }) &&
         all(model.lock_orders, [&](const model::LockOrder& order) { return is_valid(order, of); }) &&
         all(model.racy_touches, [&](const model::RacyTouch& touch) { return is_valid(touch, of); });
}

std::string pack(const model::Model& model) {
  Packer packer;
  packer.put(model);
  return packer.take();
}

std::optional<model::Model> unpack(std::string_view bytes) {
  Unpacker unpacker(bytes);
  model::Model model;
  unpacker.get(model);
  if (!unpacker.is_whole() || !are_ids_valid(model)) return std::nullopt;
  return model;
}

}  // namespace forksight::guard
