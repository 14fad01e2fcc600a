#include "loader/elf_view.hpp"

#include <string.h>

#include "guest/memory.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// The hash of the GNU hash section (DJB, h * 33 + c).
std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The hash of System V ABI, chapter 5.
std::uint32_t sysv_hash(const char* name) {
  std::uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4U) + static_cast<unsigned char>(*name);
    const std::uint32_t high = hash & 0xf0000000U;
    hash = (hash ^ high >> 24U) & ~high;
  }
  return hash;
}

constexpr ElfW(Half) kHiddenVersion = 0x8000;
constexpr std::uint32_t kMaxDynamic = 512;      // entries; real objects have about 30
constexpr std::uint32_t kMaxChain = 1U << 16U;  // the most links to follow in a hash chain, which may be garbage

}  // namespace

ElfView::ElfView(ElfW(Addr) bias, const ElfW(Dyn) * dynamic, Trust trust)
    : bias_(bias), dynamic_(reinterpret_cast<std::uint64_t>(dynamic)), trust_(trust) {
  ElfW(Dyn) entry;
  for (std::uint32_t i = 0; read_entry(i, entry); ++i) {
    // On x86-64, glibc has already added the bias to the addresses in this section. glibc cannot do so in the vdso,
    // whose section is read-only.
    const ElfW(Addr) value = entry.d_un.d_ptr;
    const ElfW(Addr) address = value < bias ? value + bias : value;
    switch (entry.d_tag) {
      case DT_SYMTAB: symbols_ = address; break;
      case DT_STRTAB: strings_ = address; break;
      case DT_GNU_HASH: gnu_hash_ = address; break;
      case DT_HASH: sysv_hash_ = address; break;
      case DT_VERSYM: versions_ = address; break;
      case DT_VERDEF: version_definitions_ = address; break;
      case DT_SONAME: soname_ = value; break;
      case DT_RELA: relocations_ = address; break;
      case DT_RELASZ: relocation_bytes_ = value; break;
      case DT_JMPREL: plt_relocations_ = address; break;
      case DT_PLTRELSZ: plt_bytes_ = value; break;
      default: break;
    }
  }
}

bool ElfView::read_entry(std::uint32_t index, ElfW(Dyn) & entry) const {
  return index < kMaxDynamic && read(dynamic_ + index * sizeof entry, &entry, sizeof entry) && entry.d_tag != DT_NULL;
}

bool ElfView::read_string(std::uint64_t offset, char (&to)[kNameBytes]) const {
  if (strings_ == 0) return false;
  const auto* from = reinterpret_cast<const char*>(strings_ + offset);
  std::size_t got = 0;
  if (trust_ == Trust::kNone) {
    got = read_memory(from, to, kNameBytes);
  } else {
    got = strnlen(from, kNameBytes - 1) + 1;
    memcpy(to, from, got);
  }
  return memchr(to, '\0', got) != nullptr;
}

std::uint64_t ElfView::read_version(std::uint64_t at, VersionStart& start) const {
  ElfW(Verdef) version;
  ElfW(Verdaux) name;
  start = {"?"};
  if (!read(at, &version, sizeof version)) return 0;
  if ((version.vd_flags & VER_FLG_BASE) != 0) {
    start = {};
  } else if (!read(at + version.vd_aux, &name, sizeof name) ||
             !read(strings_ + name.vda_name, start.text, sizeof start.text)) {
    start = {"?"};
  }
  return version.vd_next == 0 ? 0 : at + version.vd_next;
}

// Compares in pieces, because names are long and the caller's stack may be small.
bool ElfView::has_string(std::uint64_t offset, const char* text) const {
  if (strings_ == 0) return false;
  const std::size_t bytes = strlen(text) + 1;
  char piece[32];
  for (std::size_t at = 0; at < bytes; at += sizeof piece) {
    const std::size_t length = bytes - at < sizeof piece ? bytes - at : sizeof piece;
    if (!read(strings_ + offset + at, piece, length) || memcmp(piece, text + at, length) != 0) return false;
  }
  return true;
}

bool ElfView::has_soname(const char* name) const { return soname_ != 0 && has_string(soname_, name); }

bool ElfView::matches(std::uint32_t index, const char* name, Versions versions, std::uint32_t type,
                      std::uint64_t& value) const {
  ElfW(Sym) symbol;
  ElfW(Half) version = 0;
  if (!read(symbols_ + index * sizeof symbol, &symbol, sizeof symbol)) return false;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || ELF64_ST_TYPE(symbol.st_info) != type) return false;
  if (versions_ != 0 && !read(versions_ + index * sizeof version, &version, sizeof version)) return false;
  value = bias_ + symbol.st_value;
  if (versions != Versions::kAny && (version & kHiddenVersion) != 0) return false;
  if (versions == Versions::kNone && version > VER_NDX_GLOBAL) return false;
  return has_string(symbol.st_name, name);
}

std::uint64_t ElfView::find_by_gnu_hash(const char* name, Versions versions, std::uint32_t type) const {
  // Layout: nbuckets, first symbol, bloom words, bloom shift, bloom[], buckets[], chains[].
  std::uint32_t head[4];
  if (!read(gnu_hash_, head, sizeof head) || head[0] == 0 || head[2] == 0) return 0;
  const std::uint32_t hash = gnu_hash(name);
  const std::uint64_t bloom = gnu_hash_ + sizeof head;
  const std::uint64_t buckets = bloom + std::uint64_t{head[2]} * sizeof(std::uint64_t);
  const std::uint64_t chains = buckets + std::uint64_t{head[0]} * sizeof(std::uint32_t);
  std::uint64_t word = 0;
  if (!read(bloom + hash / 64 % head[2] * sizeof word, &word, sizeof word)) return 0;
  if ((word >> hash % 64 & word >> (hash >> head[3] % 32) % 64 & 1U) == 0) return 0;
  std::uint32_t index = 0;
  if (!read(buckets + hash % head[0] * sizeof index, &index, sizeof index) || index < head[1]) return 0;
  for (std::uint32_t step = 0; step < kMaxChain; ++step, ++index) {
    std::uint32_t entry = 0;
    std::uint64_t value = 0;
    if (!read(chains + std::uint64_t{index - head[1]} * sizeof entry, &entry, sizeof entry)) return 0;
    if ((entry | 1U) == (hash | 1U) && matches(index, name, versions, type, value)) return value;
    if ((entry & 1U) != 0) return 0;
  }
  return 0;
}

std::uint64_t ElfView::find_by_sysv_hash(const char* name, Versions versions, std::uint32_t type) const {
  // Layout: nbucket, nchain, bucket[], chain[].
  std::uint32_t head[2];
  if (!read(sysv_hash_, head, sizeof head) || head[0] == 0) return 0;
  const std::uint64_t buckets = sysv_hash_ + sizeof head;
  const std::uint64_t chains = buckets + std::uint64_t{head[0]} * sizeof(std::uint32_t);
  std::uint32_t index = 0;
  if (!read(buckets + sysv_hash(name) % head[0] * sizeof index, &index, sizeof index)) return 0;
  for (std::uint32_t step = 0; step < kMaxChain && index != STN_UNDEF; ++step) {
    std::uint64_t value = 0;
    if (matches(index, name, versions, type, value)) return value;
    if (!read(chains + std::uint64_t{index} * sizeof index, &index, sizeof index)) return 0;
  }
  return 0;
}

std::uint64_t ElfView::find_function(const char* name, Versions versions) const {
  return find(name, versions, STT_FUNC);
}

std::uint64_t ElfView::find_variable(const char* name) const { return find(name, Versions::kDefault, STT_OBJECT); }

std::uint64_t ElfView::find(const char* name, Versions versions, std::uint32_t type) const {
  if (symbols_ == 0 || strings_ == 0) return 0;
  if (gnu_hash_ != 0) return find_by_gnu_hash(name, versions, type);
  return sysv_hash_ != 0 ? find_by_sysv_hash(name, versions, type) : 0;
}

bool ElfView::find_static_tls_offset(std::int64_t& offset) const {
  constexpr std::uint64_t kMostBytes = 1U << 20U;
  if (relocations_ == 0 || relocation_bytes_ > kMostBytes) return false;
  for (std::uint64_t at = 0; at + sizeof(ElfW(Rela)) <= relocation_bytes_; at += sizeof(ElfW(Rela))) {
    ElfW(Rela) entry;
    std::int64_t value = 0;
    if (!read(relocations_ + at, &entry, sizeof entry)) return false;
    // Without a symbol the addend is the offset in the object's own segment (x86-64 psABI, TLS relocations).
    if (ELF64_R_TYPE(entry.r_info) != R_X86_64_TPOFF64 || ELF64_R_SYM(entry.r_info) != 0) continue;
    if (!read(bias_ + entry.r_offset, &value, sizeof value)) return false;
    offset = value - entry.r_addend;
    return true;
  }
  return false;
}

}  // namespace forksight
