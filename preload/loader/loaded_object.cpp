#include "loader/loaded_object.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "guest/memory.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// The hash is that of FNV-1a, but takes a word at a time. A multiplication changes the high bits most, so add() mixes
// these into the low bits by a shift.
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

// The answer of _dl_find_object(): struct dl_find_object of <dlfcn.h>, which older headers do not have.
struct FoundByLoader {
  std::uint64_t flags;
  void* start;
  void* end;
  link_map* map;
  void* unwind_table;
  std::uint64_t reserved[7];
};
#ifdef DLFO_STRUCT_HAS_EH_DBASE
static_assert(sizeof(FoundByLoader) >= sizeof(dl_find_object));
static_assert(offsetof(FoundByLoader, map) == offsetof(dl_find_object, dlfo_link_map));
#endif
using AskLoader = int (*)(void* address, FoundByLoader* found);

constexpr std::uint64_t kNotAsked = 0;
constexpr std::uint64_t kNone = 1;
constinit std::atomic<std::uint64_t> g_ask_loader{kNotAsked};

// The function _dl_find_object() of glibc; null before glibc 2.35.
AskLoader find_dl_find_object() {
  std::uint64_t known = g_ask_loader.load(std::memory_order_relaxed);
  if (known == kNotAsked) {
    known = find_in_libc("_dl_find_object");
    if (known == 0) known = kNone;
    if (last_at_startup() != nullptr) g_ask_loader.store(known, std::memory_order_relaxed);
  }
  return known == kNone ? nullptr : reinterpret_cast<AskLoader>(known);
}

bool copy(std::uint64_t from, void* to, std::size_t bytes, bool stays) {
  if (!stays) return read_memory(reinterpret_cast<const void*>(from), to, bytes) == bytes;
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

// The mapped range of an object's segments. `is_it`: true if the program headers name the dynamic section that the
// loader's list gives for the object. If false, these are not the program headers of that object.
struct Range {
  std::uint64_t start;
  std::uint64_t end;
  bool is_it;
};

__attribute__((noinline)) Range read_range(std::uint64_t headers, std::uint32_t count, std::uint64_t bias,
                                           const ElfW(Dyn) * dynamic, bool stays) {
  constexpr std::uint32_t kBatch = 4;
  Range range{~std::uint64_t{0}, 0, false};
  for (std::uint32_t at = 0; at < count; at += kBatch) {
    ElfW(Phdr) segments[kBatch];
    const std::uint32_t batch = count - at < kBatch ? count - at : kBatch;
    if (!copy(headers + at * sizeof segments[0], segments, batch * sizeof segments[0], stays)) return {};
    for (std::uint32_t i = 0; i < batch; ++i) {
      const std::uint64_t low = bias + segments[i].p_vaddr;
      if (segments[i].p_type == PT_DYNAMIC) range.is_it = low == reinterpret_cast<std::uint64_t>(dynamic);
      if (segments[i].p_type != PT_LOAD) continue;
      if (low < range.start) range.start = low;
      if (low + segments[i].p_memsz > range.end) range.end = low + segments[i].p_memsz;
    }
  }
  return range;
}

// The ELF header of a library is expected at its bias, because libraries are linked at address 0. The contents of the
// header show whether that is right. For the program, the kernel says where the program headers are. The result is all
// zero if the header is not there, or if the object was unloaded.
LoadedObject read_object(const link_map* map, std::uint64_t bias, const ElfW(Dyn) * dynamic, bool stays) {
  constexpr std::uint64_t kPageBytes = 4096;
  if (dynamic == nullptr) return {};
  Range range{};
  if (map == _r_debug.r_map) {
    range = read_range(getauxval(AT_PHDR), static_cast<std::uint32_t>(getauxval(AT_PHNUM)), bias, dynamic, stays);
  } else {
    ElfW(Ehdr) head;
    if (!copy(bias, &head, sizeof head, stays) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
    if (head.e_phentsize != sizeof(ElfW(Phdr))) return {};
    range = read_range(bias + head.e_phoff, head.e_phnum, bias, dynamic, stays);
    if (range.start != bias) return {};
  }
  if (!range.is_it || range.end <= range.start) return {};
  return {map, range.start & ~(kPageBytes - 1), range.end};
}

LoadedObject object_with(const LoadedObject& object, std::uint64_t address) {
  return address >= object.start && address < object.end ? object : LoadedObject{};
}

// Reads an object that was opened after the start. `map`: its node in the loader's list. The result is all zero if the
// object does not contain `address`, or if the node is not in the list any more. The memory of a removed node may still
// exist, but the node before it in the list does not point to it any more. Sets `next` to the next node of the list.
__attribute__((noinline)) LoadedObject read_opened(const link_map* map, std::uint64_t address, const link_map*& next) {
  link_map node;
  link_map* back = nullptr;
  next = nullptr;
  if (read_memory(map, &node, sizeof node) != sizeof node || node.l_prev == nullptr) return {};
  if (!copy(reinterpret_cast<std::uint64_t>(&node.l_prev->l_next), &back, sizeof back, false) || back != map) return {};
  next = node.l_next;
  return object_with(read_object(map, node.l_addr, node.l_ld, false), address);
}

__attribute__((noinline)) LoadedObject find_in_list(std::uint64_t address) {
  const link_map* const last = last_at_startup();
  if (last == nullptr) return {};
  const link_map* at = _r_debug.r_map;
  for (; at != last->l_next; at = at->l_next) {
    const LoadedObject object = object_with(read_object(at, at->l_addr, at->l_ld, true), address);
    if (object.map != nullptr) return object;
    if (at == last) break;
  }
  const link_map* next = nullptr;
  // The shim's own table only says where to look first, because another thread may be changing it.
  if (const Module* const module = find_module(address)) {
    const LoadedObject object = read_opened(module->map, address, next);
    if (object.map != nullptr) return object;
  }
  for (at = last->l_next; at != nullptr; at = next) {
    const LoadedObject object = read_opened(at, address, next);
    if (object.map != nullptr) return object;
  }
  return {};
}

}  // namespace

LoadedObject find_object(std::uint64_t address) {
  const AskLoader ask = find_dl_find_object();
  if (ask == nullptr) return find_in_list(address);
  FoundByLoader found{};
  if (ask(reinterpret_cast<void*>(address), &found) != 0) return {};
  return {found.map, reinterpret_cast<std::uint64_t>(found.start), reinterpret_cast<std::uint64_t>(found.end)};
}

std::uint64_t find_elf_header(std::uint64_t bias, const ElfW(Dyn) * dynamic, bool stays) {
  if (find_dl_find_object() != nullptr) return find_object(reinterpret_cast<std::uint64_t>(dynamic)).start;
  return read_object(nullptr, bias, dynamic, stays).start;
}

bool is_in_shim(std::uint64_t address) {
  return find_object(address).map == find_object(reinterpret_cast<std::uint64_t>(&is_in_shim)).map;
}

std::uint64_t identify(const LoadedObject& object) {
  if (object.map == nullptr) return 0;
  const char* const path = object.map->l_name;
  std::uint64_t hash = add_bytes(0xcbf29ce484222325, path, strlen(path));
  hash = add_bytes(hash, reinterpret_cast<const char*>(object.start), sizeof(ElfW(Ehdr)));
  return add(hash, object.start);
}

}  // namespace forksight
