// The memory and the actors of a model: put by, put back, and told from others by a hash.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "local_ring.hpp"
#include "state_set.hpp"

namespace forksight::ipc::test {

using detail::buffer;
using detail::participant;
using detail::slot;

constexpr std::uint32_t kProducers = 2, kConsumers = 2, kUsers = kProducers + kConsumers;
constexpr std::size_t kStack = 16 * 1024;
constexpr std::uint32_t kMaxActors = 6;

using memory_of_ring = local_ring<2, 2, kUsers>;

struct actor {
  ucontext_t context{};
  alignas(64) char stack[kStack]{};
  std::uint64_t history = 0;  // of what it saw
  bool is_over = false;
  // What it has done, of its own view.
  bool has_sent = false, has_taken = false, has_released = false, saw_corrupt = false;
  std::uint64_t number = 0;
};

struct world {
  memory_of_ring memory{};
  detail::ring view;
  ucontext_t explorer{};
  actor actors[kMaxActors];
  std::uint32_t actor_count = 0;
  int victim = -1;  // killed
};

inline world g_world;
inline actor* g_running = nullptr;
inline bool g_sees_facts = false;  // the words that a message is described by are steps of their own, too

// Read by nobody before the word that guards them has changed, and by nobody who decides: not a step.
inline bool is_fact(const void* word) {
  const auto within = [&](const auto& table, std::size_t offset, std::size_t size) {
    const auto* const base = reinterpret_cast<const char*>(&table[0]);
    const auto* const at = static_cast<const char*>(word);
    return at >= base && at < base + sizeof table && static_cast<std::size_t>(at - base) % size == offset;
  };
  const memory_of_ring& memory = g_world.memory;
  if (within(memory.buffers, offsetof(buffer, since_ns), sizeof(buffer))) return true;
  return !g_sees_facts && (within(memory.slots, offsetof(slot, length), sizeof(slot)) ||
                           within(memory.slots, offsetof(slot, producer), sizeof(slot)) ||
                           within(memory.buffers, offsetof(buffer, generation), sizeof(buffer)) ||
                           within(memory.buffers, offsetof(buffer, deliveries), sizeof(buffer)));
}

// What an actor and the memory were. Of the stack only what is in use.
struct saved_actor {
  ucontext_t context;
  std::vector<char> stack;
  std::size_t from;
  std::uint64_t history, number;
  bool is_over, has_sent, has_taken, has_released, saw_corrupt;
};
struct saved {
  std::vector<char> memory;
  saved_actor one;  // the one that moves
  int victim;
};

inline std::size_t stack_in_use(const actor& of) {
#if defined(__x86_64__)
  const auto pointer = static_cast<std::uintptr_t>(of.context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  const auto pointer = static_cast<std::uintptr_t>(of.context.uc_mcontext.sp);
#endif
  const auto base = reinterpret_cast<std::uintptr_t>(of.stack);
  // The red zone of x86-64.
  const std::uintptr_t from = pointer < base + 128 || pointer > base + kStack ? base : pointer - 128;
  return from - base;
}

inline void save(saved& to, std::uint32_t index) {
  const char* const bytes = reinterpret_cast<const char*>(&g_world.memory);
  to.memory.assign(bytes, bytes + sizeof g_world.memory);
  const actor& of = g_world.actors[index];
  to.one.context = of.context;
  to.one.from = stack_in_use(of);
  to.one.stack.assign(of.stack + to.one.from, of.stack + kStack);
  to.one.history = of.history;
  to.one.number = of.number;
  to.one.is_over = of.is_over;
  to.one.has_sent = of.has_sent;
  to.one.has_taken = of.has_taken;
  to.one.has_released = of.has_released;
  to.one.saw_corrupt = of.saw_corrupt;
  to.victim = g_world.victim;
}

inline void restore(const saved& from, std::uint32_t index) {
  std::memcpy(static_cast<void*>(&g_world.memory), from.memory.data(), from.memory.size());
  actor& of = g_world.actors[index];
  of.context = from.one.context;
#if defined(__x86_64__)
  of.context.uc_mcontext.fpregs = &of.context.__fpregs_mem;
#endif
  std::memcpy(of.stack + from.one.from, from.one.stack.data(), from.one.stack.size());
  of.history = from.one.history;
  of.number = from.one.number;
  of.is_over = from.one.is_over;
  of.has_sent = from.one.has_sent;
  of.has_taken = from.one.has_taken;
  of.has_released = from.one.has_released;
  of.saw_corrupt = from.one.saw_corrupt;
  g_world.victim = from.victim;
}

inline std::uint64_t state_now() {
  std::uint64_t hash = static_cast<std::uint64_t>(g_world.victim + 2);
  const memory_of_ring& memory = g_world.memory;
  hash = mixed(hash, memory.head.tail.peek());
  hash = mixed(hash, memory.head.head.peek());
  for (const slot& one : memory.slots) {
    hash = mixed(hash, one.word.peek());
    hash = mixed(hash, one.length.peek() << 32 | one.buffer.peek());
    hash = mixed(hash, one.producer.peek());
  }
  for (const buffer& one : memory.buffers) {
    hash = mixed(hash, one.word.peek());
    hash = mixed(hash, std::uint64_t{one.generation.peek()} << 32 | one.deliveries.peek());
  }
  hash = mixed(hash, memory.free_map[0].peek());
  hash = mixed(hash, memory.head.last_producer.peek());
  for (const participant& one : memory.participants) hash = mixed(hash, one.word.peek());
  for (std::uint32_t i = 0; i < g_world.actor_count; ++i) {
    const actor& one = g_world.actors[i];
    hash = mixed(hash, one.is_over ? 1 + one.has_sent + 2u * one.has_released + 4u * one.has_taken + 8 * one.number
                                   : one.history | 1ull << 63);
  }
  return hash;
}

}  // namespace forksight::ipc::test
