// Reads a loaded ELF object through its dynamic section: symbols, needed libraries, soname. No loader lock, no
// allocation: dlsym and dl_iterate_phdr take locks that another thread may hold for as long as it likes.
// x86-64 only. The object must stay loaded during a call.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace forksight {

class ElfView {
 public:
  ElfView(ElfW(Addr) bias, const ElfW(Dyn) * dynamic);

  // The default version of an exported, defined function; 0 if there is none.
  std::uint64_t find_function(const char* name) const;
  const char* soname() const { return soname_; }
  // Calls visit(name) for each DT_NEEDED, until it returns false.
  template <class Visit>
  void for_each_needed(Visit visit) const {
    for (const ElfW(Dyn)* entry = dynamic_; strings_ != nullptr && entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_NEEDED && !visit(strings_ + entry->d_un.d_val)) return;
    }
  }

 private:
  bool matches(std::uint32_t index, const char* name) const;

  ElfW(Addr) bias_;
  const ElfW(Dyn) * dynamic_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const char* soname_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* sysv_hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
};

}  // namespace forksight
