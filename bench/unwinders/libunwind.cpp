#include <libunwind.h>

#include <cstring>
#include <stdexcept>

#include "walkers.hpp"

// libunwind exports this function, and perf uses it, but no header declares it.
extern "C" int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int,
                                                  void*);

namespace forksight::bench {
namespace {

constexpr std::size_t kMaxFrames = 2048;

class Libunwind final : public Walker {
 public:
  explicit Libunwind(const std::vector<symbols::Module>& modules) : modules_(modules) {
    unw_accessors_t accessors{};
    accessors.find_proc_info = find_proc_info;
    accessors.put_unwind_info = [](unw_addr_space_t, unw_proc_info_t*, void*) {};
    accessors.get_dyn_info_list_addr = [](unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; };
    accessors.access_mem = read_word;
    accessors.access_reg = read_register;
    accessors.access_fpreg = [](unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; };
    accessors.resume = [](unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; };
    accessors.get_proc_name = [](unw_addr_space_t, unw_word_t, char*, std::size_t, unw_word_t*, void*) {
      return -UNW_ENOINFO;
    };
    space_ = unw_create_addr_space(&accessors, 0);
    if (space_ == nullptr) throw std::runtime_error("unw_create_addr_space");
    unw_set_caching_policy(space_, UNW_CACHE_GLOBAL);
  }
  ~Libunwind() override { unw_destroy_addr_space(space_); }

  Answer walk(const Subject& subject) override {
    subject_ = &subject;
    is_beyond_ = false;
    Answer answer;
    unw_cursor_t cursor;
    if (unw_init_remote(&cursor, space_, this) != 0) return answer;
    int step = 1;
    while (step > 0 && answer.pcs.size() < kMaxFrames) {
      unw_word_t pc = 0;
      unw_get_reg(&cursor, UNW_REG_IP, &pc);
      // libunwind was given the return address minus one, which is inside the call instruction. This line adds the one
      // again.
      if (answer.pcs.empty() && !subject.is_exact) ++pc;
      if (pc == 0) break;
      answer.pcs.push_back(pc);
      step = unw_step(&cursor);
    }
    if (step == 0) {
      answer.end = symbols::WalkEnd::kThreadStart;
    } else if (is_beyond_) {
      answer.end = symbols::WalkEnd::kBytesEnd;
    }
    return answer;
  }

 private:
  static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int needs_info, void* self) {
    auto& walker = *static_cast<Libunwind*>(self);
    const auto place = walker.modules_.locate(ip);
    if (!place) return -UNW_ENOINFO;
    const std::uint64_t header = place.binary->elf().unwind_table_address();
    const auto bytes = place.binary->elf().bytes_at(header);
    if (header == 0 || bytes.size() < 12) return -UNW_ENOINFO;
    std::uint32_t count = 0;
    std::memcpy(&count, bytes.data() + 8, sizeof count);
    unw_dyn_info_t table{};
    table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    table.start_ip = place.module->start;
    table.end_ip = place.module->end;
    table.u.rti.segbase = place.module->bias + header;
    table.u.rti.table_data = table.u.rti.segbase + 12;
    table.u.rti.table_len = count * 8 / sizeof(unw_word_t);
    return _Ux86_64_dwarf_search_unwind_table(space, ip, &table, info, needs_info, self);
  }

  static int read_word(unw_addr_space_t, unw_word_t address, unw_word_t* value, int is_write, void* self) {
    if (is_write != 0) return -UNW_EINVAL;
    auto& walker = *static_cast<Libunwind*>(self);
    // Unwind tables are read from the file of the binary. The recorded memory does not contain them. For a live
    // process, reading the file is cheaper than reading its memory.
    const auto place = walker.modules_.locate(address);
    const auto bytes = place ? place.binary->elf().bytes_at(place.address) : std::span<const std::byte>();
    if (!bytes.empty()) {
      *value = 0;
      std::memcpy(value, bytes.data(), std::min(bytes.size(), sizeof *value));
      return 0;
    }
    const auto word = walker.subject_->stack.read(address);
    walker.is_beyond_ = walker.is_beyond_ || (!word && address >= walker.subject_->stack.end());
    *value = word.value_or(0);
    return word ? 0 : -UNW_EINVAL;
  }

  static int read_register(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int is_write, void* self) {
    const Subject& subject = *static_cast<Libunwind*>(self)->subject_;
    if (is_write != 0 || number < 0 || static_cast<std::size_t>(number) >= symbols::kRegisterCount) return -UNW_EBADREG;
    // libunwind numbers registers as DWARF does.
    const auto known = subject.registers[static_cast<std::size_t>(number)];
    if (!known) return -UNW_EBADREG;
    *value = *known - (number == UNW_X86_64_RIP && !subject.is_exact ? 1 : 0);
    return 0;
  }

  symbols::AddressSpace modules_;
  unw_addr_space_t space_ = nullptr;
  const Subject* subject_ = nullptr;
  bool is_beyond_ = false;
};

}  // namespace

std::unique_ptr<Walker> make_libunwind(const std::vector<symbols::Module>& modules) {
  return std::make_unique<Libunwind>(modules);
}

}  // namespace forksight::bench
