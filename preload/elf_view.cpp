#include "elf_view.hpp"

#include <string.h>

#include "guest.hpp"

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

}  // namespace

ElfView::ElfView(ElfW(Addr) bias, const ElfW(Dyn) * dynamic) : bias_(bias), dynamic_(dynamic) {
  ElfW(Xword) soname = 0;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    // glibc relocates these in place on x86-64, but not for the vdso, whose section it may not write.
    const ElfW(Addr) value = entry->d_un.d_ptr;
    const ElfW(Addr) address = value < bias ? value + bias : value;
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols_ = reinterpret_cast<const ElfW(Sym)*>(address); break;
      case DT_STRTAB: strings_ = reinterpret_cast<const char*>(address); break;
      case DT_GNU_HASH: gnu_hash_ = reinterpret_cast<const std::uint32_t*>(address); break;
      case DT_HASH: sysv_hash_ = reinterpret_cast<const std::uint32_t*>(address); break;
      case DT_VERSYM: versions_ = reinterpret_cast<const ElfW(Half)*>(address); break;
      case DT_SONAME: soname = value; break;
      default: break;
    }
  }
  if (strings_ != nullptr && soname != 0) soname_ = strings_ + soname;
}

bool ElfView::matches(std::uint32_t index, const char* name) const {
  const ElfW(Sym)& symbol = symbols_[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return false;
  if (versions_ != nullptr && (versions_[index] & kHiddenVersion) != 0) return false;
  return strcmp(strings_ + symbol.st_name, name) == 0;
}

std::uint64_t ElfView::find_function(const char* name) const {
  if (symbols_ == nullptr || strings_ == nullptr) return 0;
  if (gnu_hash_ != nullptr) {
    // Layout: nbuckets, first symbol, bloom words, bloom shift, bloom[], buckets[], chains[].
    const std::uint32_t hash = gnu_hash(name);
    const std::uint32_t buckets = gnu_hash_[0];
    const std::uint32_t first = gnu_hash_[1];
    const std::uint32_t bloom_words = gnu_hash_[2];
    if (buckets == 0 || bloom_words == 0) return 0;
    const auto* bloom = reinterpret_cast<const std::uint64_t*>(gnu_hash_ + 4);
    const std::uint64_t word = bloom[hash / 64 % bloom_words];
    if ((word >> hash % 64 & word >> (hash >> gnu_hash_[3]) % 64 & 1U) == 0) return 0;
    const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t index = bucket[hash % buckets];
    if (index < first) return 0;
    for (;; ++index) {
      const std::uint32_t entry = chain[index - first];
      if ((entry | 1U) == (hash | 1U) && matches(index, name)) return bias_ + symbols_[index].st_value;
      if ((entry & 1U) != 0) return 0;
    }
  }
  if (sysv_hash_ != nullptr && sysv_hash_[0] != 0) {
    // Layout: nbucket, nchain, bucket[], chain[].
    const std::uint32_t* bucket = sysv_hash_ + 2;
    const std::uint32_t* chain = bucket + sysv_hash_[0];
    for (std::uint32_t index = bucket[sysv_hash(name) % sysv_hash_[0]]; index != STN_UNDEF; index = chain[index]) {
      if (matches(index, name)) return bias_ + symbols_[index].st_value;
    }
  }
  return 0;
}

}  // namespace forksight
