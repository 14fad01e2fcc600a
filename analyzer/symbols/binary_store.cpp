#include "symbols/binary_store.hpp"

#include <map>
#include <vector>

namespace forksight::symbols {

std::mutex& binaries_mutex() {
  static std::mutex mutex;
  return mutex;
}

Result<Binary*> open_binary(const std::string& path, std::span<const std::uint8_t> build_id) {
  using Key = std::pair<std::string, std::vector<std::uint8_t>>;
  static std::map<Key, Binary> store;
  Key key(path, std::vector<std::uint8_t>(build_id.begin(), build_id.end()));
  if (const auto found = store.find(key); found != store.end()) return &found->second;
  auto elf = ElfModule::open(path, build_id);
  if (!elf) return Error{elf.error()};
  return &store.try_emplace(std::move(key), std::move(elf).value()).first->second;
}

}  // namespace forksight::symbols
