// The memory functions of the test driver: cuMemAlloc with its legacy handles, and memory that is shared by a
// descriptor.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <map>

#include "test_driver.hpp"

namespace forksight::test_driver {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGranularity = 2u << 20;
constexpr std::uint32_t kHandleMagic = 0x6c656761;
constexpr char kVmmName[] = "forksight-test-driver-vmm";

// The processes that have an allocation of cuMemAlloc open. This list is in the first page of the allocation's file,
// before the bytes of the allocation.
struct open_by {
  std::atomic<std::uint64_t> peers[64];
};
static_assert(sizeof(open_by) <= kPage);

std::uint64_t word_of(const peer& who) { return std::uint64_t{who.pid} | std::uint64_t{who.start} << 32; }
peer peer_of(std::uint64_t word) { return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)}; }

struct legacy_handle {
  std::uint32_t magic;
  peer exporter;
  int fd;
  std::uint64_t bytes;
};
static_assert(sizeof(legacy_handle) <= sizeof(cu_ipc_handle));

struct range {
  enum class kind { allocated, imported, reserved, registered } what{};
  std::size_t bytes = 0;
  int fd = -1;
  open_by* opened = nullptr;
  bool is_exported = false;
  peer exporter{};
  cu_context context = nullptr;
  bool is_mapped = false;                                // only for a reserved range
  int access = 0;                                        // only for a reserved range: the flags of cuMemSetAccess
  std::shared_ptr<int> held = std::make_shared<int>(0);  // shared with each step of a stream that uses the range
};
std::map<cu_address, range>& g_ranges = *new std::map<cu_address, range>;

struct vmm_allocation {
  int fd;
  std::size_t bytes;
  bool is_exportable;
};
std::map<cu_allocation_handle, vmm_allocation>& g_allocations = *new std::map<cu_allocation_handle, vmm_allocation>;
cu_allocation_handle g_next_allocation = 1;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
char* pointer_to(cu_address at) { return reinterpret_cast<char*>(at); }
cu_address address_of(const void* at) { return reinterpret_cast<cu_address>(at); }

// Returns the range that contains the address, or the end.
auto find_range(cu_address at) {
  auto it = g_ranges.upper_bound(at);
  if (it == g_ranges.begin()) return g_ranges.end();
  --it;
  return at - it->first < it->second.bytes ? it : g_ranges.end();
}

// Maps the bytes and the list of the processes that have them open.
bool map_both(range& of, cu_address& base) {
  void* const list = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, of.fd, 0);
  void* const data = mmap(nullptr, round_up(of.bytes, kPage), PROT_READ | PROT_WRITE, MAP_SHARED, of.fd, kPage);
  if (list == MAP_FAILED || data == MAP_FAILED) return false;
  of.opened = static_cast<open_by*>(list);
  base = address_of(data);
  return true;
}

void forget(std::map<cu_address, range>::iterator it) {
  munmap(pointer_to(it->first), round_up(it->second.bytes, kPage));
  if (it->second.opened != nullptr) munmap(it->second.opened, kPage);
  if (it->second.fd >= 0) close(it->second.fd);
  g_ranges.erase(it);
}

// If memory is unmapped while a stream still works on it, NVIDIA's driver fails the work with error 700, and the
// context is lost. The test driver ends the process instead.
void check_unused(const range& of, const char* call) {
  if (of.held.use_count() > 1) misuse(std::string(call) + " while a stream still has work on the memory");
}

std::map<const char*, std::size_t>& g_pinned = *new std::map<const char*, std::size_t>;

}  // namespace

bool is_pinned(const void* memory, std::size_t bytes) {
  const auto* const at = static_cast<const char*>(memory);
  auto it = g_pinned.upper_bound(at);
  if (it == g_pinned.begin()) return false;
  --it;
  return at + bytes <= it->first + it->second;
}

int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  REQUIRE_CONTEXT();
  REQUIRE(memory != nullptr && bytes > 0, kInvalidValue);
  const std::lock_guard held(g_lock);
  char* const made = new char[bytes]();
  g_pinned.emplace(made, bytes);
  *memory = made;
  return kSuccess;
}

int cuMemFreeHost(void* memory) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  REQUIRE(g_pinned.erase(static_cast<const char*>(memory)) == 1, kInvalidValue);
  delete[] static_cast<char*>(memory);
  return kSuccess;
}

int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(memory != nullptr && bytes > 0 && flags == kHostRegisterMapped, kInvalidValue);
  const std::lock_guard held(g_lock);
  range made;
  made.what = range::kind::registered;
  made.bytes = bytes;
  REQUIRE(g_ranges.emplace(address_of(memory), made).second, kInvalidValue);
  return kSuccess;
}

int cuMemHostGetDevicePointer_v2(cu_address* at, void* memory, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(at != nullptr && flags == 0, kInvalidValue);
  const std::lock_guard held(g_lock);
  const auto it = find_range(address_of(memory));
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::registered, kInvalidValue);
  *at = address_of(memory);
  return kSuccess;
}

int cuMemHostUnregister(void* memory) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(address_of(memory));
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::registered, kInvalidValue);
  check_unused(it->second, "cuMemHostUnregister");
  g_ranges.erase(it);
  return kSuccess;
}

int find_memory(cu_address at, std::size_t bytes, use how, used_memory& memory) {
  const auto it = find_range(at);
  if (it == g_ranges.end() || bytes > it->first + it->second.bytes - at) return kInvalidValue;
  const range& of = it->second;
  if (of.what == range::kind::imported && !of.exporter.is_alive()) {
    misuse("memory of a legacy handle is used after process " + std::to_string(of.exporter.pid) + " has ended");
  }
  const int needed = how == use::write ? kAccessReadWrite : kAccessRead;
  if (of.what == range::kind::reserved && (of.access & needed) != needed) return kInvalidValue;
  memory = {pointer_to(at), of.held};
  return kSuccess;
}

int cuMemAlloc_v2(cu_address* memory, std::size_t bytes) {
  REQUIRE_CONTEXT();
  REQUIRE(memory != nullptr && bytes > 0, kInvalidValue);
  const std::lock_guard held(g_lock);
  range made;
  made.what = range::kind::allocated;
  made.bytes = bytes;
  made.context = current();
  made.fd = make_file("forksight-test-driver", kPage + round_up(bytes, kPage));
  REQUIRE(made.fd >= 0 && map_both(made, *memory), kOutOfMemory);
  g_ranges.emplace(*memory, made);
  return kSuccess;
}

int cuMemFree_v2(cu_address memory) {
  REQUIRE_CONTEXT();
  wait_until([=] {
    const auto it = g_ranges.find(memory);
    return it == g_ranges.end() || it->second.held.use_count() == 1;
  });
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(memory);
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::allocated, kInvalidValue);
  for (const auto& one : it->second.opened->peers) {
    const std::uint64_t word = one.load();
    if (word != 0 && peer_of(word).is_alive()) {
      misuse("cuMemFree while process " + std::to_string(peer_of(word).pid) + " has the memory open");
    }
  }
  forget(it);
  return kSuccess;
}

int cuMemGetAddressRange_v2(cu_address* base, std::size_t* bytes, cu_address at) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  const auto it = find_range(at);
  REQUIRE(it != g_ranges.end(), kInvalidValue);
  if (base != nullptr) *base = it->first;
  if (bytes != nullptr) *bytes = it->second.bytes;
  return kSuccess;
}

int cuPointerGetAttribute(void* value, int attribute, cu_address at) {
  REQUIRE_CONTEXT();
  REQUIRE(value != nullptr && (attribute == kPointerLegacyIpc || attribute == kPointerDevice), kInvalidValue);
  const std::lock_guard held(g_lock);
  const auto it = find_range(at);
  REQUIRE(it != g_ranges.end(), kInvalidValue);
  if (attribute == kPointerDevice) {
    *static_cast<int*>(value) = it->second.context != nullptr ? device_of(it->second.context) : 0;
    return kSuccess;
  }
  *static_cast<int*>(value) = it->second.what == range::kind::allocated && !lacks(attribute) ? 1 : 0;
  return kSuccess;
}

int cuIpcGetMemHandle(cu_ipc_handle* handle, cu_address memory) {
  REQUIRE_CONTEXT();
  REQUIRE(handle != nullptr, kInvalidValue);
  const std::lock_guard held(g_lock);
  // The handle is for the whole allocation, even if the address is not its beginning.
  const auto it = find_range(memory);
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::allocated, kInvalidValue);
  REQUIRE(!lacks(kPointerLegacyIpc), kNotSupported);
  it->second.is_exported = true;
  const legacy_handle made{kHandleMagic, peer::self(), it->second.fd, it->second.bytes};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return kSuccess;
}

int cuIpcOpenMemHandle_v2(cu_address* memory, cu_ipc_handle handle, unsigned flags) {
  REQUIRE_CONTEXT();
  legacy_handle of{};
  std::memcpy(&of, &handle, sizeof of);
  REQUIRE(memory != nullptr && flags == kLazyPeerAccess && of.magic == kHandleMagic, kInvalidValue);
  REQUIRE(word_of(of.exporter) != word_of(peer::self()), kInvalidContext);
  REQUIRE(of.exporter.is_alive(), kInvalidHandle);
  const std::lock_guard held(g_lock);
  for (const auto& [at, known] : g_ranges) {
    if (known.what != range::kind::imported || known.fd < 0) continue;
    struct stat theirs {
    }, ours{};
    const std::string path = "/proc/" + std::to_string(of.exporter.pid) + "/fd/" + std::to_string(of.fd);
    if (stat(path.c_str(), &theirs) == 0 && fstat(known.fd, &ours) == 0 && theirs.st_ino == ours.st_ino) {
      // Only one context of a process may have the memory open. Since CUDA 11, NVIDIA's driver may let the same context
      // open the memory again, and count how often it is open. The test driver follows the older rule, and refuses the
      // second call.
      return known.context == current() ? kAlreadyMapped : kInvalidContext;
    }
  }
  range made;
  made.what = range::kind::imported;
  made.bytes = of.bytes;
  made.exporter = of.exporter;
  made.context = current();
  made.fd = open_of_process(of.exporter.pid, of.fd);
  REQUIRE(made.fd >= 0 && map_both(made, *memory), kInvalidHandle);
  for (auto& one : made.opened->peers) {
    std::uint64_t before = one.load();
    if (before != 0 && peer_of(before).is_alive()) continue;
    if (!one.compare_exchange_strong(before, word_of(peer::self()))) continue;
    g_ranges.emplace(*memory, made);
    return kSuccess;
  }
  return kOutOfMemory;
}

int cuIpcCloseMemHandle(cu_address memory) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(memory);
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::imported, kInvalidValue);
  check_unused(it->second, "cuIpcCloseMemHandle");
  for (auto& one : it->second.opened->peers) {
    std::uint64_t ours = word_of(peer::self());
    if (one.compare_exchange_strong(ours, 0)) break;
  }
  forget(it);
  return kSuccess;
}

int cuMemGetAllocationGranularity(std::size_t* bytes, const cu_allocation* of, int which) {
  REQUIRE_INIT();
  REQUIRE(bytes != nullptr && of != nullptr && (which == 0 || which == 1), kInvalidValue);
  *bytes = kGranularity;
  return kSuccess;
}

int cuMemCreate(cu_allocation_handle* handle, std::size_t bytes, const cu_allocation* of, unsigned long long flags) {
  REQUIRE_INIT();
  REQUIRE(handle != nullptr && of != nullptr && flags == 0, kInvalidValue);
  REQUIRE(bytes != 0 && bytes % kGranularity == 0, kInvalidValue);
  REQUIRE(of->type == kAllocationPinned && of->location.type == kLocationDevice, kInvalidValue);
  REQUIRE(!lacks(kAttributeVmm) && (of->handle_types == 0 || !lacks(kAttributePosixFd)), kNotSupported);
  const int fd = make_file(kVmmName, bytes);
  REQUIRE(fd >= 0, kOutOfMemory);
  const std::lock_guard held(g_lock);
  *handle = g_next_allocation++;
  g_allocations.emplace(*handle, vmm_allocation{fd, bytes, of->handle_types == kHandlePosixFd});
  return kSuccess;
}

int cuMemRelease(cu_allocation_handle handle) {
  REQUIRE_INIT();
  const std::lock_guard held(g_lock);
  const auto it = g_allocations.find(handle);
  REQUIRE(it != g_allocations.end(), kInvalidValue);
  // Mappings of the memory stay, because the kernel counts the references to the file.
  close(it->second.fd);
  g_allocations.erase(it);
  return kSuccess;
}

int cuMemExportToShareableHandle(void* shareable, cu_allocation_handle handle, int type, unsigned long long flags) {
  REQUIRE_INIT();
  const std::lock_guard held(g_lock);
  const auto it = g_allocations.find(handle);
  REQUIRE(shareable != nullptr && it != g_allocations.end() && type == kHandlePosixFd && flags == 0, kInvalidValue);
  REQUIRE(it->second.is_exportable, kInvalidValue);
  const int copy = dup(it->second.fd);
  REQUIRE(copy >= 0, kOutOfMemory);
  std::memcpy(shareable, &copy, sizeof copy);
  return kSuccess;
}

int cuMemImportFromShareableHandle(cu_allocation_handle* handle, void* shareable, int type) {
  REQUIRE_INIT();
  REQUIRE(handle != nullptr && type == kHandlePosixFd, kInvalidValue);
  const int theirs = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  char target[64] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(theirs);
  REQUIRE(readlink(path.c_str(), target, sizeof target - 1) > 0 && std::strstr(target, kVmmName) != nullptr,
          kInvalidValue);
  struct stat about {};
  REQUIRE(fstat(theirs, &about) == 0, kInvalidValue);
  const int fd = dup(theirs);
  REQUIRE(fd >= 0, kOutOfMemory);
  const std::lock_guard held(g_lock);
  *handle = g_next_allocation++;
  g_allocations.emplace(*handle, vmm_allocation{fd, static_cast<std::size_t>(about.st_size), false});
  return kSuccess;
}

int cuMemAddressReserve(cu_address* at, std::size_t bytes, std::size_t alignment, cu_address wish,
                        unsigned long long flags) {
  REQUIRE_INIT();
  REQUIRE(at != nullptr && bytes != 0 && bytes % kGranularity == 0 && alignment == 0 && wish == 0 && flags == 0,
          kInvalidValue);
  void* const made = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(made != MAP_FAILED, kOutOfMemory);
  const std::lock_guard held(g_lock);
  range of;
  of.what = range::kind::reserved;
  of.bytes = bytes;
  *at = address_of(made);
  g_ranges.emplace(*at, of);
  return kSuccess;
}

int cuMemAddressFree(cu_address at, std::size_t bytes) {
  REQUIRE_INIT();
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(at);
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::reserved && it->second.bytes == bytes, kInvalidValue);
  REQUIRE(!it->second.is_mapped, kInvalidValue);
  forget(it);
  return kSuccess;
}

int cuMemMap(cu_address at, std::size_t bytes, std::size_t offset, cu_allocation_handle handle,
             unsigned long long flags) {
  REQUIRE_INIT();
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(at);
  const auto from = g_allocations.find(handle);
  REQUIRE(it != g_ranges.end() && it->second.what == range::kind::reserved && !it->second.is_mapped, kInvalidValue);
  REQUIRE(from != g_allocations.end() && offset == 0 && flags == 0, kInvalidValue);
  REQUIRE(bytes == it->second.bytes && bytes <= from->second.bytes, kInvalidValue);
  void* const made = mmap(pointer_to(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, from->second.fd, 0);
  REQUIRE(made != MAP_FAILED, kOutOfMemory);
  it->second.is_mapped = true;
  return kSuccess;
}

int cuMemUnmap(cu_address at, std::size_t bytes) {
  REQUIRE_INIT();
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(at);
  REQUIRE(it != g_ranges.end() && it->second.is_mapped && it->second.bytes == bytes, kInvalidValue);
  check_unused(it->second, "cuMemUnmap");
  mmap(pointer_to(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  it->second.is_mapped = false;
  it->second.access = 0;
  return kSuccess;
}

int cuMemSetAccess(cu_address at, std::size_t bytes, const cu_access* access, std::size_t count) {
  REQUIRE_INIT();
  REQUIRE(access != nullptr && count == 1 && access->location.type == kLocationDevice, kInvalidValue);
  const std::lock_guard held(g_lock);
  const auto it = g_ranges.find(at);
  REQUIRE(it != g_ranges.end() && it->second.is_mapped && it->second.bytes == bytes, kInvalidValue);
  REQUIRE(access->flags == kAccessReadWrite || access->flags == kAccessRead, kInvalidValue);
  const int rights = access->flags == kAccessRead ? PROT_READ : PROT_READ | PROT_WRITE;
  REQUIRE(mprotect(pointer_to(at), bytes, rights) == 0, kOutOfMemory);
  it->second.access = access->flags;
  return kSuccess;
}

}  // namespace forksight::test_driver
