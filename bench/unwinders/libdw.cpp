#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include "walkers.hpp"

namespace forksight::bench {
namespace {

constexpr std::size_t kMaxFrames = 2048;
constexpr pid_t kTid = 1;  // libdw gets one thread, the subject, with this id

char* g_debug_path = nullptr;
const Dwfl_Callbacks kFiles = {
    .find_elf = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; },
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = nullptr,
    .debuginfo_path = &g_debug_path,
};

int open_module(const symbols::Module& module) {
  if (!module.bytes) return ::open((module.file.empty() ? module.path : module.file).c_str(), O_RDONLY | O_CLOEXEC);
  const int fd = memfd_create("module", MFD_CLOEXEC);
  if (write(fd, module.bytes->data(), module.bytes->size()) != static_cast<ssize_t>(module.bytes->size())) return -1;
  return fd;
}

class Libdw final : public Walker {
 public:
  explicit Libdw(const std::vector<symbols::Module>& modules) : session_(dwfl_begin(&kFiles)) {
    dwfl_report_begin(session_);
    for (const symbols::Module& module : modules) {
      if (module.bytes ? module.bytes->empty() : !module.path.starts_with('/')) continue;
      const int fd = open_module(module);
      if (fd < 0) continue;
      if (dwfl_report_elf(session_, module.path.c_str(), module.path.c_str(), fd, module.bias, true) == nullptr)
        close(fd);
    }
    dwfl_report_end(session_, nullptr, nullptr);
    static const Dwfl_Thread_Callbacks kCallbacks = {
        .next_thread = [](Dwfl*, void*, void**) -> pid_t { return 0; },
        .get_thread =
            [](Dwfl*, pid_t, void* self, void** thread) {
              *thread = self;
              return true;
            },
        .memory_read = read_word,
        .set_initial_registers = set_registers,
        .detach = nullptr,
        .thread_detach = nullptr,
    };
    if (!dwfl_attach_state(session_, nullptr, kTid, &kCallbacks, this)) throw std::runtime_error(dwfl_errmsg(-1));
  }
  ~Libdw() override { dwfl_end(session_); }

  Answer walk(const Subject& subject) override {
    subject_ = &subject;
    is_beyond_ = false;
    answer_ = {};
    const int result = dwfl_getthread_frames(session_, kTid, add_frame, this);
    // If a return address cannot be read, libdw takes this for the end of the stack.
    if (is_beyond_ || result == DWARF_CB_ABORT) {
      answer_.end = symbols::WalkEnd::kBytesEnd;
    } else if (result == 0) {
      answer_.end = symbols::WalkEnd::kThreadStart;
    }
    return std::move(answer_);
  }

 private:
  static bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* value, void* self) {
    auto& walker = *static_cast<Libdw*>(self);
    const auto word = walker.subject_->stack.read(address);
    walker.is_beyond_ = walker.is_beyond_ || (!word && address >= walker.subject_->stack.end());
    if (word) *value = *word;
    return word.has_value();
  }

  static bool set_registers(Dwfl_Thread* thread, void* self) {
    const Subject& subject = *static_cast<Libdw*>(self)->subject_;
    for (int number = 0; number < 16; ++number) {
      const auto known = subject.registers[static_cast<std::size_t>(number)];
      if (known && !dwfl_thread_state_registers(thread, number, 1, &*known)) return false;
    }
    // libdw is given the return address minus one, which is inside the call instruction.
    dwfl_thread_state_register_pc(thread, *subject.registers[symbols::kReturnAddress] - (subject.is_exact ? 0 : 1));
    return true;
  }

  static int add_frame(Dwfl_Frame* frame, void* self) {
    auto& walker = *static_cast<Libdw*>(self);
    Dwarf_Addr pc = 0;
    bool is_exact = false;
    if (!dwfl_frame_pc(frame, &pc, &is_exact)) return DWARF_CB_ABORT;
    if (walker.answer_.pcs.empty() && !walker.subject_->is_exact) ++pc;
    walker.answer_.pcs.push_back(pc);
    return walker.answer_.pcs.size() < kMaxFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  Dwfl* session_;
  const Subject* subject_ = nullptr;
  Answer answer_;
  bool is_beyond_ = false;
};

}  // namespace

std::unique_ptr<Walker> make_libdw(const std::vector<symbols::Module>& modules) {
  return std::make_unique<Libdw>(modules);
}

}  // namespace forksight::bench
