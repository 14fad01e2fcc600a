#include "cuda/cuda_ipc.hpp"

#include <string.h>

#include "guest/clock.hpp"
#include "guest/kept_errno.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "loader/modules.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit std::atomic<std::uint32_t> g_ipc_exports{0};
constinit std::atomic<std::uint32_t> g_ipc_imports{0};

namespace {

using trace::CudaIpcKind;
using trace::CudaIpcRecord;

constexpr std::uint32_t kHandleWords = 8;
constexpr std::uint32_t kMaxShared = 256;    // entries in each of the two tables
constexpr std::uint32_t kMaxRecords = 1024;  // of one process; with their stacks, these records take 4 MiB
constexpr std::size_t kStackBytes = 4U << 10U;

struct Handle {
  std::uint64_t words[kHandleWords];
};

// An allocation that this process has exported, or memory of another process that this process has open.
struct Shared {
  std::atomic<std::uint64_t> address;  // 0: free
  std::uint64_t end;                   // only for memory that is open: the address behind its last byte
  std::uint64_t handle;
  std::uint64_t record;
  std::atomic<std::uint32_t> opens;
};
constinit Shared g_exported[kMaxShared] = {};
constinit Shared g_open[kMaxShared] = {};
constinit std::atomic<std::uint32_t> g_records{0};
constinit std::uint64_t g_full_note = 0;
// The process that the tables belong to. A child of fork() has a copy of the tables.
constinit std::atomic<std::int32_t> g_owner{0};

std::uint64_t hash_of(const Handle& handle) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::uint64_t word : handle.words) {
    for (unsigned shift = 0; shift < 64; shift += 8) hash = (hash ^ (word >> shift & 0xffU)) * 0x100000001b3U;
  }
  return hash;
}

template <class T>
bool read_callers(std::uint64_t address, T& out) {
  return address != 0 && read_memory(reinterpret_cast<const void*>(address), &out, sizeof out) == sizeof out;
}

Shared* find(Shared (&list)[kMaxShared], std::uint64_t address) {
  if (address == 0) return nullptr;
  for (Shared& one : list) {
    if (one.address.load(std::memory_order_acquire) == address) return &one;
  }
  return nullptr;
}

// Adds an entry to the list, and returns it. Null: the list is full.
Shared* add(Shared (&list)[kMaxShared], std::uint64_t address, std::uint64_t handle, std::uint64_t bytes) {
  for (Shared& one : list) {
    std::uint64_t none = 0;
    // While the address is 1, no look-up finds the entry. So an incomplete entry is never used.
    if (!one.address.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) continue;
    one.end = address + bytes;
    one.handle = handle;
    one.record = 0;
    one.opens.store(1, std::memory_order_relaxed);
    one.address.store(address, std::memory_order_release);
    return &one;
  }
  return nullptr;
}

CudaIpcRecord* record_at(std::uint64_t reference) {
  return find_record<CudaIpcRecord>(reference, trace::RecordType::kCudaIpc);
}

std::uint64_t write(const CudaIpcRecord& facts, const Site& site) {
  g_owner.store(sys::getpid(), std::memory_order_relaxed);
  if (!open_trace()) return 0;
  if (g_records.fetch_add(1, std::memory_order_relaxed) >= kMaxRecords) {
    count_in_note(g_full_note, trace::NoteCode::kCudaIpcFull);
    return 0;
  }
  refresh_modules();
  CudaIpcRecord record = facts;
  record.stack = append_stack(site, own_slot(), kStackBytes, false, Importance::kFact);
  return append(trace::RecordType::kCudaIpc, record);
}

void note_full() {
  if (open_trace()) count_in_note(g_full_note, trace::NoteCode::kCudaIpcFull);
}

void end_export(const CudaWords& call, std::uint64_t began_ns, const Site& site) {
  Handle handle{};
  if (call.count < 2 || call.words[1] == 0 || !read_callers(call.words[0], handle)) return;
  std::uint64_t base = call.words[1];
  (void)ask_cuda_bytes(call.words[1], &base);
  const std::uint64_t hash = hash_of(handle);
  Shared* known = find(g_exported, base);
  if (known != nullptr && known->handle == hash) return;
  if (known != nullptr) {
    // This is another allocation at the same address. The shim did not see how the first one was freed.
    known->handle = hash;
  } else {
    known = add(g_exported, base, hash, 0);
    if (known == nullptr) return note_full();
    g_ipc_exports.fetch_add(1, std::memory_order_relaxed);
  }
  known->record = write({hash, base, 0, 0, began_ns, now_ns(), 0, CudaIpcKind::kExport, 0}, site);
}

void end_open(const CudaWords& call, std::uint64_t began_ns, int result, const Site& site) {
  if (call.count < 6 + kHandleWords) return;
  Handle handle{};
  memcpy(handle.words, call.words + 6, sizeof handle.words);
  std::uint64_t address = 0;
  if (result == 0) (void)read_callers(call.words[0], address);
  if (result == 0 && address == 0) return;
  const std::uint64_t hash = hash_of(handle);
  std::uint64_t base = address;
  const std::uint64_t bytes = result == 0 ? ask_cuda_bytes(address, &base) : 0;
  const std::uint64_t record =
      write({hash, address, bytes, 0, began_ns, now_ns(), 0, CudaIpcKind::kOpen, result}, site);
  if (result != 0) return;
  if (Shared* const known = find(g_open, address)) {
    known->opens.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Shared* const made = add(g_open, address, hash, bytes);
  if (made == nullptr) return note_full();
  made->record = record;
  g_ipc_imports.fetch_add(1, std::memory_order_relaxed);
}

void end_close(std::uint64_t address) {
  Shared* const known = find(g_open, address);
  if (known == nullptr || known->opens.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  known->address.store(0, std::memory_order_release);
  g_ipc_imports.fetch_sub(1, std::memory_order_relaxed);
}

void end_free(std::uint64_t address) {
  Shared* const known = find(g_exported, address);
  if (known == nullptr) return;
  known->address.store(0, std::memory_order_release);
  g_ipc_exports.fetch_sub(1, std::memory_order_relaxed);
}

void end_context(CudaEntry entry, const CudaWords& call, std::uint64_t began_ns, const Site& site) {
  if (g_ipc_imports.load(std::memory_order_relaxed) == 0) return;
  // If the context is still active, other callers have retained it, so it still exists.
  if (entry == CudaEntry::cuDevicePrimaryCtxRelease_v2 && ask_cuda_active(call.words[0])) return;
  write({0, 0, 0, 0, began_ns, now_ns(), 0, CudaIpcKind::kContextGone, 0}, site);
  for (Shared& one : g_open) {
    std::uint64_t address = one.address.load(std::memory_order_acquire);
    if (address <= 1 || !one.address.compare_exchange_strong(address, 0, std::memory_order_acq_rel)) continue;
    g_ipc_imports.fetch_sub(1, std::memory_order_relaxed);
  }
}

__attribute__((noinline)) void note_end(const Site& site) {
  if (g_owner.load(std::memory_order_relaxed) != sys::getpid()) return;
  const std::uint64_t now = now_ns();
  write({0, 0, 0, 0, now, now, 0, CudaIpcKind::kEnd, 0}, site);
}

}  // namespace

std::uint64_t begin_ipc(CudaEntry entry, const CudaWords& call, const Site& site) {
  if (g_watch_cuda || call.count == 0) return 0;
  const bool frees = is_ipc_free(entry);
  const Shared* const known = frees                                     ? find(g_exported, call.words[0])
                              : entry == CudaEntry::cuIpcCloseMemHandle ? find(g_open, call.words[0])
                                                                        : nullptr;
  if (known == nullptr) return 0;
  const KeptErrno kept;
  return write(
      {known->handle, call.words[0], 0, 0, now_ns(), 0, 0, frees ? CudaIpcKind::kFree : CudaIpcKind::kClose, 0}, site);
}

void end_ipc(CudaEntry entry, const CudaWords& call, std::uint64_t record, std::uint64_t began_ns, int result,
             const Site& site) {
  if (g_watch_cuda || call.count == 0) return;
  const KeptErrno kept;
  if (CudaIpcRecord* const facts = record_at(record)) {
    facts->result = result;
    __atomic_store_n(&facts->ended_ns, now_ns(), __ATOMIC_RELEASE);
  }
  switch (entry) {
    case CudaEntry::cuIpcGetMemHandle: return result == 0 ? end_export(call, began_ns, site) : void();
    case CudaEntry::cuIpcOpenMemHandle_v2: return end_open(call, began_ns, result, site);
    case CudaEntry::cuIpcCloseMemHandle: return result == 0 ? end_close(call.words[0]) : void();
    case CudaEntry::cuMemFree_v2: return result == 0 ? end_free(call.words[0]) : void();
    default: return result == 0 ? end_context(entry, call, began_ns, site) : void();
  }
}

void note_ipc_use(std::uint32_t addresses, const CudaWords& call) {
  for (std::uint32_t word = 0; word < call.count && addresses >> word != 0; ++word) {
    if ((addresses >> word & 1U) == 0) continue;
    const std::uint64_t address = call.words[word];
    for (const Shared& one : g_open) {
      const std::uint64_t begin = one.address.load(std::memory_order_acquire);
      if (begin <= 1 || one.record == 0 || (address != begin && (address < begin || address >= one.end))) continue;
      CudaIpcRecord* const facts = record_at(one.record);
      if (facts != nullptr) __atomic_store_n(&facts->used_ns, now_ns(), __ATOMIC_RELAXED);
    }
  }
}

}  // namespace forksight

// exit() calls this after the atexit handlers. _exit() does not call it.
__attribute__((destructor)) static void forksight_ipc_destructor() {
  if (FORKSIGHT_UNLIKELY(forksight::g_owner.load(std::memory_order_relaxed) != 0)) {
    forksight::note_end(FORKSIGHT_FRAME().site());
  }
}
