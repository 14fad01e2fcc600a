// dlsym: how nearly every program comes by the CUDA driver's functions.
//
// The real dlsym looks at its return address: RTLD_NEXT and RTLD_DEFAULT mean the caller's object. So the hook must not
// be its caller. It is a jump: two bytes of the name are compared, and all but names with "cu", "MP" or "uc" in front,
// and searches of the global scope, go on to the real function with every register and the stack as they came.
// Functions of MPI and UCX come out as they are; they are looked at so that a program does not find the shim's own
// where it would have found none.
#include <dlfcn.h>
#include <string.h>

#include <cstddef>

#include "cuda/cuda.hpp"
#include "guest/site.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "mpi/mpi.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

extern "C" {
// Null until the first call. Read by the jump below.
[[gnu::visibility("hidden"), gnu::used]] constinit void* forksight_real_dlsym = nullptr;

// In rax and rdx. Unless it is final, the real function is jumped to.
struct DlsymAnswer {
  void* address;
  std::uint64_t is_final;
};
[[gnu::visibility("hidden"), gnu::used]] DlsymAnswer forksight_answer_dlsym(void* handle, const char* name,
                                                                            std::uint64_t caller);
}

namespace {

using RealDlsym = void* (*)(void*, const char*);

bool needs_provider(std::uint64_t caller, bool is_cuda) {
  refresh_modules();
  const Module* const module = find_module(caller);
  if (module == nullptr) return false;
  bool found = false;
  ElfView(module->bias, module->dynamic, module->is_permanent ? Trust::kStaysLoaded : Trust::kNone)
      .for_each_needed([&](const char* needed) {
        found = is_cuda ? strncmp(needed, "libcuda.so", 10) == 0
                        : strncmp(needed, "libmpi", 6) == 0 || strncmp(needed, "libucp.so", 9) == 0;
        return !found;
      });
  return found;
}

// The search would meet the shim's own export. Would it meet another without the shim? The search behind the shim
// tells, and leaves the right dlerror() where it would not.
DlsymAnswer answer_for_export(const char* name, std::uint64_t caller, bool sees_its_own) {
  const auto real = reinterpret_cast<RealDlsym>(forksight_real_dlsym);
  const bool is_there =
      (sees_its_own && needs_provider(caller, is_cuda_name(name))) || real(RTLD_NEXT, name) != nullptr;
  return {nullptr, is_there ? 0U : 1U};
}

// The exports that have versions are hidden from dlsym. A caller that asks for the next definition, or for the
// program's own, gets the hook where its search would pass the shim and end at libc: an interposer in the program, as a
// sanitizer, is watched all the same, and dlsym agrees with the address that the program's own reference has.
std::uint64_t find_hook_for(void* handle, const char* name, std::uint64_t caller) {
  const std::uint64_t hook = find_hook(name);
  if (hook == 0 || last_at_startup() == nullptr) return 0;
  const link_map* from = _r_debug.r_map;
  if (handle == RTLD_NEXT) {
    const link_map* const object = find_object(caller).dlfo_link_map;
    while (from != nullptr && from != object && from->l_ld != _DYNAMIC) from = from->l_next;
    if (from == nullptr || from != object) return 0;  // behind the shim, or loaded later
    from = from->l_next;
  }
  return leads_to_libc(name, from) ? hook : 0;
}

}  // namespace

DlsymAnswer forksight_answer_dlsym(void* handle, const char* name, std::uint64_t caller) {
  if (forksight_real_dlsym == nullptr) {
    initialise();
    forksight_real_dlsym = reinterpret_cast<void*>(find_next("dlsym"));
  }
  if (name == nullptr) return {nullptr, 0};
  const bool is_cuda = is_cuda_name(name);
  if (!is_cuda && !is_mpi_name(name)) {
    const bool is_search = handle == RTLD_DEFAULT || handle == RTLD_NEXT || handle == _r_debug.r_map;
    const std::uint64_t hook = is_search ? find_hook_for(handle, name, caller) : 0;
    if (hook == 0) return {nullptr, 0};
    reinterpret_cast<RealDlsym>(forksight_real_dlsym)(RTLD_DEFAULT, name);  // forgets the last dlerror(), as it should
    return {reinterpret_cast<void*>(hook), 1};
  }
  // What a caller finds behind itself it gets as it is: it interposes the driver, too.
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return answer_for_export(name, caller, handle == RTLD_DEFAULT);
  const auto real = reinterpret_cast<RealDlsym>(forksight_real_dlsym);
  void* const found = real(handle, name);
  if (found == nullptr) return {nullptr, 1};
  const auto address = reinterpret_cast<std::uint64_t>(found);
  if (is_in_shim(address)) return answer_for_export(name, caller, false);
  if (!is_cuda) return {found, 1};
  return {reinterpret_cast<void*>(wrap_cuda(name, address, trace::CudaWay::kDlsym)), 1};
}

static_assert(offsetof(r_debug, r_map) == 8);

// name may be null or one byte long: its second byte is looked at only if the first is a 'c', 'M' or 'u'.
asm(FORKSIGHT_SYMVER_dlsym R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  leaq 1(%rdi), %rax
  cmpq $1, %rax
  jbe 2f                          # RTLD_NEXT, RTLD_DEFAULT
  movq _r_debug@GOTPCREL(%rip), %rax
  cmpq 8(%rax), %rdi
  je 2f                           # the program
  testq %rsi, %rsi
  je 2f
  cmpb $'c', (%rsi)
  jne 4f
  cmpb $'u', 1(%rsi)
  je 2f
1:
  movq forksight_real_dlsym(%rip), %rax
  testq %rax, %rax
  je 2f
  jmp *%rax
2:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), %rdx
  call forksight_answer_dlsym
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rdx, %rdx
  jne 3f
  jmp *forksight_real_dlsym(%rip)
3:
  ret
4:
  cmpb $'M', (%rsi)
  jne 5f
  cmpb $'P', 1(%rsi)
  je 2b
  jmp 1b
5:
  cmpb $'u', (%rsi)
  jne 1b
  cmpb $'c', 1(%rsi)
  je 2b
  jmp 1b
  .cfi_endproc
  .size dlsym, . - dlsym
)");
