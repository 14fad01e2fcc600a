#include "model_world.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace forksight::ipc::test {

template <class T>
int word_table::add(detail::shared_word<T>& word, word_kind kind, carried what, int guard) {
  word_info made;
  made.at = reinterpret_cast<char*>(&word);
  made.size = sizeof(T);
  made.kind = kind;
  made.what = what;
  if (kind == word_kind::guard) made.bit = guards_++;
  if (guard >= 0) made.guard = static_cast<std::uint8_t>(guard);
  all_.push_back(made);
  return static_cast<int>(all_.size() - 1);
}

word_table::word_table() {
  memory_of_ring& memory = g_world.memory;
  add(memory.head.tail, word_kind::common);
  add(memory.head.head, word_kind::common);
  add(memory.head.returns, word_kind::common);
  add(memory.free_map[0], word_kind::common);
  for (detail::slot& one : memory.slots) {
    const int guard = add(one.word, word_kind::guard, carried::owner);
    add(one.buffer, word_kind::fact, carried::nothing, guard);
  }
  for (detail::buffer& one : memory.buffers) {
    const int guard = add(one.word, word_kind::guard, carried::owner);
    add(one.generation, word_kind::fact, carried::nothing, guard);
    add(one.deliveries, word_kind::fact, carried::nothing, guard);
    add(one.length, word_kind::fact, carried::number, guard);
    add(one.producer, word_kind::fact, carried::pid, guard);
  }
  for (auto& kind : memory.head.waiting) add(kind[0], word_kind::recovery);
  add(memory.head.last_producer, word_kind::recovery);
  add(memory.head.creator, word_kind::recovery);
  for (detail::participant& one : memory.participants) {
    add(one.word, word_kind::recovery);
    add(one.roles, word_kind::recovery);
  }
}

int word_table::find(const void* at) const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].at == at) return static_cast<int>(i);
  }
  std::printf("broken: a word at offset %td is not modelled\n",
              static_cast<const char*>(at) - reinterpret_cast<const char*>(&g_world.memory));
  std::exit(3);
}

bool word_table::is_ignored(const void* at) {
  for (const detail::buffer& one : g_world.memory.buffers) {
    if (at == &one.since_ns || at == &one.parked_by) return true;
    for (const auto& consumer : one.consumers) {
      if (at == &consumer) return true;
    }
  }
  return false;
}

std::uint64_t read_word(const word_info& of) {
  std::uint64_t value = 0;
  std::memcpy(&value, of.at, of.size);
  return value;
}

void write_word(const word_info& of, std::uint64_t value) { std::memcpy(of.at, &value, of.size); }

}  // namespace forksight::ipc::test
