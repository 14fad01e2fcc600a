#include "loader/loaded_object.hpp"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// FNV-1a's prime and start, a word at a time; the shift brings the high bits, which a product changes most, down.
constexpr std::uint64_t kPrime = 0x100000001b3;

std::uint64_t add(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kPrime;
  return hash ^ hash >> 32U;
}

std::uint64_t add_bytes(std::uint64_t hash, const char* bytes, std::size_t count) {
  for (; count >= sizeof(std::uint64_t); bytes += sizeof(std::uint64_t), count -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    memcpy(&word, bytes, sizeof word);
    hash = add(hash, word);
  }
  std::uint64_t rest = count;
  for (std::size_t i = 0; i < count; ++i) rest = rest << 8U | static_cast<unsigned char>(bytes[i]);
  return add(hash, rest);
}

}  // namespace

dl_find_object find_object(std::uint64_t address) {
  dl_find_object found{};
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) found = {};
  return found;
}

bool is_in_shim(std::uint64_t address) {
  return find_object(address).dlfo_link_map == find_object(reinterpret_cast<std::uint64_t>(&is_in_shim)).dlfo_link_map;
}

std::uint64_t identify(const dl_find_object& object) {
  if (object.dlfo_link_map == nullptr) return 0;
  const char* const path = object.dlfo_link_map->l_name;
  std::uint64_t hash = add_bytes(0xcbf29ce484222325, path, strlen(path));
  hash = add_bytes(hash, static_cast<const char*>(object.dlfo_map_start), sizeof(ElfW(Ehdr)));
  return add(hash, reinterpret_cast<std::uint64_t>(object.dlfo_map_start));
}

}  // namespace forksight
