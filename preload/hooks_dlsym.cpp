// The hook of dlsym. Nearly every program that uses the CUDA driver gets the driver's functions from dlsym.
//   The real dlsym reads its return address, because RTLD_NEXT and RTLD_DEFAULT depend on the caller's object. So the
//   hook must not call the real dlsym on behalf of the caller. If the hook does not know the answer itself, it jumps to
//   the real function with arguments and stack unchanged. For functions of MPI and UCX, the answer of the real function
//   is not changed.
#include <dlfcn.h>

#include <link.h>

#include "bindings.hpp"
#include "cuda/cuda.hpp"
#include "guest/site.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

extern "C" {
// The address of the real dlsym; null until the first call of the hook. The last jump of the hook reads this variable.
[[gnu::visibility("hidden"), gnu::used]] constinit void* forksight_real_dlsym = nullptr;

// Returned in rax and rdx. If `is_final` is 0, the hook jumps to the real function.
struct DlsymAnswer {
  void* address;
  std::uint64_t is_final;
};
[[gnu::visibility("hidden"), gnu::used]] DlsymAnswer forksight_answer_dlsym(void* handle, const char* name,
                                                                            std::uint64_t caller);
}

namespace {

// True once the real dlsym is known and cannot be unloaded. Before glibc 2.34 dlsym is in a library of its own, which
// may be opened and closed.
constinit bool g_dlsym_stays = false;

// Returns the hook that dlsym should return; 0: none. The real dlsym does not find the shim's exports, because they
// have versions. So if a caller asks with RTLD_NEXT or RTLD_DEFAULT, and the search would pass the shim and end at
// libc, this function returns the hook. Therefore an interposer in the program, for example a sanitizer, calls the
// hooks, too. dlsym also returns the same address to which the program's own references are bound.
std::uint64_t find_hook_for(void* handle, const char* name, std::uint64_t caller) {
  const std::uint64_t hook = find_hook(name);
  if (hook == 0 || last_at_startup() == nullptr) return 0;
  const link_map* from = _r_debug.r_map;
  if (handle == RTLD_NEXT) {
    const link_map* const object = find_object(caller).map;
    while (from != nullptr && from != object && from->l_ld != _DYNAMIC) from = from->l_next;
    if (from == nullptr || from != object) return 0;  // the caller comes after the shim, or was loaded later
    from = from->l_next;
  }
  return leads_to_libc(name, from) ? hook : 0;
}

}  // namespace

DlsymAnswer forksight_answer_dlsym(void* handle, const char* name, std::uint64_t caller) {
  if (!g_dlsym_stays) {
    initialise();
    // The caller is linked with dlsym, so dlsym exists. If the address of dlsym has changed, the library at the old
    // address was closed, and nothing calls the old address any more.
    forksight_real_dlsym = reinterpret_cast<void*>(find_next("dlsym", g_dlsym_stays));
    if (forksight_real_dlsym == nullptr) __builtin_trap();
  }
  const auto real = reinterpret_cast<RealDlsym>(forksight_real_dlsym);
  const bool is_handle = handle != RTLD_DEFAULT && handle != RTLD_NEXT && handle != _r_debug.r_map;
  if (is_handle) watch_opened_calls(handle, real);
  if (name == nullptr) return {nullptr, 0};
  if (name[0] == 'c' && name[1] == 'u' && is_cuda_name(name)) {
    // A search of the global scope returns the function itself, because programs compare the result with the address to
    // which a reference is bound.
    if (!is_handle) return {nullptr, 0};
    const auto found = reinterpret_cast<std::uint64_t>(real(handle, name));
    return {found == 0 ? nullptr : reinterpret_cast<void*>(wrap_cuda(name, found, trace::CudaWay::kDlsym)), 1};
  }
  const std::uint64_t hook = is_handle ? 0 : find_hook_for(handle, name, caller);
  if (hook == 0) return {nullptr, 0};
  real(RTLD_DEFAULT, name);  // clears the last dlerror(), as dlsym should
  return {reinterpret_cast<void*>(hook), 1};
}

// Every call of dlsym first calls forksight_answer_dlsym().
asm(FORKSIGHT_SYMVER_dlsym R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
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
  jne 1f
  jmp *forksight_real_dlsym(%rip)
1:
  ret
  .cfi_endproc
  .size dlsym, . - dlsym
)");
