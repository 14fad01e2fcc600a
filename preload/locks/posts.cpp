#include "locks/posts.hpp"

#include <signal.h>

#include <cstddef>

#include "guest/memory.hpp"
#include "guest/signal_action.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "loader/modules.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr int kLastSignal = 64;
constexpr int kFirstOfLibc = 32;  // glibc uses 32 to cancel threads, and 33 to change the ids of all threads
constexpr int kLastOfLibc = 33;

constexpr std::uint64_t bit_of(int number) { return std::uint64_t{1} << static_cast<unsigned>(number - 1); }

// A thread causes these signals by its own actions. So a waiting thread causes none of them.
constexpr std::uint64_t kFaults =
    bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGILL) | bit_of(SIGFPE) | bit_of(SIGTRAP) | bit_of(SIGSYS);

ElfView view_of(const Module& module) {
  return {module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone};
}

// The address of the handler of the signal. 0: the signal has no handler. Returns false if the kernel does not say.
bool read_handler(int number, std::uint64_t& handler) {
  KernelAction action{};
  if (change_action(number, nullptr, &action) != 0) return false;
  handler = reinterpret_cast<std::uint64_t>(action.handler);
  if (handler == reinterpret_cast<std::uint64_t>(SIG_IGN)) handler = 0;
  return true;
}

// The C function that CPython installs for every signal that a script handles. If SIGINT alone has it, this is mostly
// the interpreter's own handler, which raises KeyboardInterrupt.
bool is_of_python(const Module& module) { return view_of(module).find_function("PyErr_SetInterrupt") != 0; }

bool is_of_libc(const Module& module) {
  const ElfView view = view_of(module);
  return view.has_soname("libc.so.6") || view.has_soname("libpthread.so.0");
}

bool is_of_shim(const Module& module) { return &module == find_module(reinterpret_cast<std::uint64_t>(&is_of_shim)); }

// Handlers of SIGABRT that are handlers of SIGSEGV, too, are for crashes. CPython has one function for all handlers of
// scripts, which is its handler of SIGINT, too.
bool is_for_crashes(std::uint64_t handler) {
  std::uint64_t of_fault = 0;
  std::uint64_t of_interrupt = 0;
  return read_handler(SIGSEGV, of_fault) && read_handler(SIGINT, of_interrupt) && handler == of_fault &&
         handler != of_interrupt;
}

__attribute__((noinline)) bool ends_no_wait(int number, std::uint64_t handler) {
  if ((kFaults & bit_of(number)) != 0) return true;
  if (number == SIGABRT) return is_for_crashes(handler);
  const Module* const module = find_module(handler);
  if (module == nullptr) return false;
  if (number == SIGINT) return is_of_python(*module);
  return is_of_shim(*module) || (number >= kFirstOfLibc && number <= kLastOfLibc && is_of_libc(*module));
}

// The module exists for this class alone. If it is linked into the interpreter, every lock of Python has the
// interpreter as its caller, so the caller shows nothing.
bool is_of_simple_queue(const Module& module) {
  return view_of(module).find_function("PyInit__queue") != 0 && !is_of_python(module);
}

}  // namespace

bool may_handler_run() {
  std::uint64_t blocked = 0;
  if (sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, sys::word(&blocked), sizeof blocked) != 0) return true;
  for (int number = 1; number <= kLastSignal; ++number) {
    if (number == SIGKILL || number == SIGSTOP || (blocked & bit_of(number)) != 0) continue;
    std::uint64_t handler = 0;
    if (!read_handler(number, handler)) return true;
    if (handler != 0 && !ends_no_wait(number, handler)) return true;
  }
  return false;
}

bool is_call_of_simple_queue(std::uint64_t sp) {
  constexpr std::uint32_t kWords = 16;
  constexpr std::uint64_t kMostBytes = 1024;  // CPython has one function between the module and sem_wait()
  const Module* last = nullptr;
  for (std::uint64_t at = sp; at < sp + kMostBytes; at += kWords * sizeof(std::uint64_t)) {
    std::uint64_t words[kWords];
    const std::size_t got = read_memory(reinterpret_cast<const void*>(at), words, sizeof words);
    for (std::uint32_t i = 0; i < got / sizeof(std::uint64_t); ++i) {
      const Module* const module = find_module(words[i]);
      if (module == nullptr || module == last) continue;
      if (words[i] >= module->code && words[i] < module->code_end && is_of_simple_queue(*module)) return true;
      last = module;
    }
  }
  return false;
}

}  // namespace forksight
