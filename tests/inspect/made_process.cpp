#include "made_process.hpp"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "forksight/abi/thread.hpp"
#include "symbols/symbols.hpp"

// The functions that the made-up processes run, and the globals that they lock. The linker may merge functions that
// have the same code. So the code of each function contains the function's name.
#define MADE_FUNCTION(name) \
  extern "C" __attribute__((noinline, used)) void name() { asm volatile("# " #name); }
MADE_FUNCTION(made_main)
MADE_FUNCTION(made_fill_cache)
MADE_FUNCTION(made_drain_cache)
MADE_FUNCTION(made_worker)
MADE_FUNCTION(made_handler)
extern "C" {
__attribute__((used)) pthread_mutex_t made_mutex;
__attribute__((used)) pthread_cond_t made_condition;
__attribute__((used)) pthread_barrier_t made_barrier;
__attribute__((used)) std::uint64_t made_guard;
__attribute__((used)) sem_t made_semaphore;
}

namespace forksight::test {
namespace {

constexpr std::uint64_t kStacks = 0x7f00'0000'0000;
constexpr std::uint64_t kStackBytes = 0x1'0000;
constexpr std::uint64_t kMostStacks = 64;
constexpr std::uint64_t kTidOffset = 0x2d0;

std::vector<symbols::Module> find_modules() {
  if (dlopen("libgomp.so.1", RTLD_NOW) == nullptr) throw std::runtime_error("no libgomp.so.1");
  std::vector<symbols::Module> modules;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        symbols::Module module;
        module.path = info->dlpi_name;
        if (module.path.empty()) {
          std::array<char, 4096> path{};
          if (readlink("/proc/self/exe", path.data(), path.size() - 1) > 0) module.path = path.data();
        }
        if (module.path.find('/') == std::string::npos) return 0;  // linux-vdso.so.1
        module.bias = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const std::uint64_t start = info->dlpi_addr + segment.p_vaddr;
          if (module.start == 0) module.start = start;
          module.end = start + segment.p_memsz;
        }
        static_cast<std::vector<symbols::Module>*>(data)->push_back(std::move(module));
        return 0;
      },
      &modules);
  std::ranges::sort(modules, {}, &symbols::Module::start);
  return modules;
}

const std::vector<symbols::Module>& modules() {
  static const std::vector<symbols::Module> found = find_modules();
  return found;
}

proc::Mapping mapping(std::uint64_t start, std::uint64_t bytes, bool shared = false) {
  proc::Mapping mapping;
  mapping.start = start;
  mapping.end = start + bytes;
  mapping.readable = true;
  mapping.writable = true;
  mapping.shared = shared;
  return mapping;
}

void append_word(std::vector<std::uint8_t>& bytes, std::uint64_t word) {
  const auto raw = std::bit_cast<std::array<std::uint8_t, sizeof word>>(word);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

}  // namespace

void MadeMemory::put(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[address + i] = bytes[i];
}

std::size_t MadeMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  for (; done < bytes.size(); ++done) {
    const auto at = bytes_.find(address + done);
    if (at == bytes_.end()) break;
    bytes[done] = std::byte{at->second};
  }
  return done;
}

std::uint64_t address_of(const std::string& symbol) {
  static symbols::Symbolizer symbolizer(modules());
  static std::map<std::string, std::uint64_t> known;
  const auto at = known.find(symbol);
  if (at != known.end()) return at->second;
  auto address = symbolizer.find_symbol(symbol, "libc.so");
  if (!address) address = symbolizer.find_symbol(symbol);
  if (!address) throw std::runtime_error("no symbol " + symbol);
  return known[symbol] = *address;
}

std::string path_of(const std::string& file_prefix) {
  for (const symbols::Module& module : modules()) {
    if (module.path.substr(module.path.rfind('/') + 1).starts_with(file_prefix)) return module.path;
  }
  throw std::runtime_error("no module " + file_prefix);
}

namespace {

// Returns an address in clone() at which unwinding ends. It serves as the return address in the outermost frame of each
// made-up stack. The address depends on the libc, so this function tries one offset after another.
std::uint64_t find_thread_start() {
  constexpr std::uint64_t kMostBytes = 0x80;
  symbols::Symbolizer symbolizer(modules());
  for (std::uint64_t offset = 1; offset < kMostBytes; ++offset) {
    std::vector<std::uint8_t> bytes;
    append_word(bytes, address_of("clone") + offset);
    append_word(bytes, 0);
    symbols::Registers registers{};
    registers[symbols::kRsp] = kStacks;
    registers[symbols::kReturnAddress] = address_of("made_worker");
    const model::Stack stack = symbolizer.unwind_thread(registers, {kStacks, std::as_bytes(std::span(bytes)), nullptr});
    if (!stack.cut && stack.frames.size() == 2) return address_of("clone") + offset;
  }
  throw std::runtime_error("no end of clone()");
}

}  // namespace

MadeProcess::MadeProcess(std::int32_t pid, std::int32_t ppid)
    : memory_(std::make_shared<MadeMemory>()), next_stack_(kStacks) {
  image.pid = pid;
  image.ppid = ppid;
  image.start_ticks = static_cast<std::uint64_t>(pid);
  image.exe = modules().front().path;
  image.modules = modules();
  image.memory = memory_;
  image.libc = {{2, 36}, abi::ConditionKind::kWithReferences};  // the tests write objects in this layout
  image.mappings = {mapping(kHeap, kHeapBytes), mapping(kSharedHeap, kHeapBytes, true),
                    mapping(kStacks, kMostStacks * kStackBytes)};
}

image::Thread& MadeProcess::add_thread(std::int32_t tid, const Names& stack, std::uint64_t word) {
  return add_thread_at(kHeap + 0x8'0000 + image.threads.size() * 0x1000, tid, stack, word);
}

image::Thread& MadeProcess::add_thread_at(std::uint64_t pointer, std::int32_t tid, const Names& stack,
                                          std::uint64_t word) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 1; i < stack.size(); ++i) append_word(bytes, address_of(stack[i]) + 1);
  static const std::uint64_t thread_start = find_thread_start();
  append_word(bytes, thread_start);
  const std::uint64_t sp = next_stack_ + kStackBytes / 2;
  next_stack_ += kStackBytes;
  put(sp, bytes);
  put_word(pointer + kTidOffset, static_cast<std::uint32_t>(tid));

  image::Thread thread;
  thread.tid = tid;
  thread.name = tid == image.pid ? "app" : "worker";
  thread.state = 'S';
  thread.start_ticks = image.start_ticks;
  thread.fs_base = pointer;
  symbols::Registers registers{};
  registers[symbols::kRsp] = sp;
  registers[symbols::kReturnAddress] = stack.empty() ? 0 : address_of(stack.front());
  thread.registers = registers;
  proc::Syscall call;
  call.in_syscall = true;
  call.number = word != 0 ? SYS_futex : SYS_pause;
  call.args[0] = word;
  call.args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
  call.args[2] = 2;
  call.sp = sp;
  call.pc = *registers[symbols::kReturnAddress];
  thread.call = call;
  image.threads.push_back(std::move(thread));
  return image.threads.back();
}

void MadeProcess::put_word(std::uint64_t address, std::uint32_t word) {
  put(address, std::bit_cast<std::array<std::uint8_t, sizeof word>>(word));
}

void MadeProcess::put_pthread(std::int32_t tid) {
  constexpr std::uint64_t kSearched = 0x1'0000;
  constexpr std::uint64_t kPointer = kFoundPointer;
  put(kHeap + kHeapBytes - kSearched, std::vector<std::uint8_t>(kSearched));
  const auto put_value = [&](std::uint64_t offset, std::uint64_t value) {
    put(kPointer + offset, std::bit_cast<std::array<std::uint8_t, sizeof value>>(value));
  };
  const abi::ThreadLayout& layout = *abi::thread_layout(image.libc.version);
  proc::Mapping code;
  code.start = address_of("made_worker") & ~std::uint64_t{0xfff};
  code.end = code.start + 0x1000;
  code.readable = code.executable = true;
  image.mappings.insert(image.mappings.begin(), code);
  put_value(0, kPointer);
  put_value(abi::kSelfInThread, kPointer);
  put_value(layout.start_routine, address_of("made_worker"));
  put_word(kPointer + layout.tid, static_cast<std::uint32_t>(tid));
}

std::vector<model::Wait> waits_of(const image::Image& image) {
  std::vector<model::Wait> waits;
  for (const image::Thread& thread : image.threads) {
    model::Wait wait;
    wait.tid = thread.tid;
    wait.name = thread.name;
    wait.state = thread.state;
    wait.kind = model::WaitKind::kOther;
    if (thread.call && thread.call->number == SYS_futex) {
      wait.kind = model::WaitKind::kFutex;
      wait.object = thread.call->args[0];
      wait.has_timeout = thread.call->args[3] != 0;
    }
    waits.push_back(std::move(wait));
  }
  return waits;
}

std::vector<inspect::Subject> family(const MadeProcess& parent, const MadeProcess& child) {
  std::vector<inspect::Subject> subjects(2);
  subjects[0].image = parent.image;
  subjects[0].liveness = model::Liveness::kVictim;
  subjects[0].waits_for = 1;
  subjects[0].waits_via = "wait4";
  subjects[0].is_forked = false;
  subjects[1].image = child.image;
  subjects[1].parent = 0;
  subjects[1].is_forked = true;
  subjects[1].liveness = model::Liveness::kDead;
  subjects[1].stuck_for_ms = 1400;
  subjects[1].waits = waits_of(child.image);
  return subjects;
}

}  // namespace forksight::test
