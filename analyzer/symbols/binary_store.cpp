#include "symbols/binary_store.hpp"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace forksight::symbols {

std::mutex& binaries_mutex() {
  static std::mutex mutex;
  return mutex;
}

Result<Binary*> open_binary(const Module& module) {
  // Two modules that have their content in memory are compared by the address of that content. The key keeps the
  // content alive, so no other content gets this address.
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  using Key = std::tuple<std::string, std::string, std::vector<std::uint8_t>, Bytes>;
  static std::map<Key, Binary> store;
  Key key(module.path, module.file, module.build_id, module.bytes);
  if (const auto found = store.find(key); found != store.end()) return &found->second;
  auto elf = ElfModule::open(module);
  if (!elf) return Error{elf.error()};
  return &store.try_emplace(std::move(key), std::move(elf).value()).first->second;
}

}  // namespace forksight::symbols
