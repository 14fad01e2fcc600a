#include "locks/orphan_table.hpp"

#include <iterator>

#include "guest/site.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint32_t kFirst = 64;  // enough for most children
constexpr std::uint32_t kChunk = 512;

constinit Orphan g_first[kFirst] = {};
constinit Orphan* g_chunks[64] = {};
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_count = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_unknown = 0;

bool has_place(std::uint32_t index) {
  if (index < kFirst) return true;
  const std::uint32_t chunk = (index - kFirst) / kChunk;
  if (chunk >= std::size(g_chunks)) return false;
  if (g_chunks[chunk] == nullptr) {
    g_chunks[chunk] = static_cast<Orphan*>(
        sys::map(kChunk * sizeof(Orphan), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  }
  return g_chunks[chunk] != nullptr;
}

}  // namespace

std::uint32_t orphan_count() { return g_count; }

Orphan& orphan_at(std::uint32_t index) {
  return index < kFirst ? g_first[index] : g_chunks[(index - kFirst) / kChunk][(index - kFirst) % kChunk];
}

Orphan* add_orphan(const Orphan& orphan) {
  if (!has_place(g_count)) {
    ++g_unknown;
    return nullptr;
  }
  Orphan& place = orphan_at(g_count);
  place = orphan;
  ++g_count;
  return &place;
}

std::uint32_t take_count_of_unstored_orphans() {
  const std::uint32_t unknown = g_unknown;
  if (unknown != 0) g_unknown = 0;
  return unknown;
}

}  // namespace forksight
