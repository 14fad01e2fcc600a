#include "device_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "failure.hpp"
#include "process.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

// All device memory of this process. The lock is held while memory is opened or closed, so two threads never open the
// same handle at the same time. A forked child never takes the lock, because the library refuses the child's calls
// before the calls take the lock.
std::mutex g_lock;
std::vector<device_memory*> g_open;

constexpr std::uint64_t kAlignment = 256;
// A legacy handle opens whole blocks of this size to the readers (seen with driver 580.159: two small allocations of
// cuMemAlloc share a block). "CUDA Driver API", cuIpcGetMemHandle, advises to share only whole blocks.
constexpr std::uint64_t kLegacyBlock = std::uint64_t{2} << 20;
std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

cu_allocation allocation_on(cu_device device) {
  cu_allocation of{};
  of.type = kAllocationPinned;
  of.handle_types = kHandlePosixFd;
  of.location = {kLocationDevice, device};
  return of;
}

bool is_same_file(int one, int other) {
  struct stat first {
  }, second{};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

void device_memory::use::reset() {
  device_memory* const of = std::exchange(of_, nullptr);
  if (of == nullptr || !of->mark_.is_ours()) return;
  bool is_last = false;
  {
    const std::lock_guard held(g_lock);
    is_last = of->uses_ == 1;
  }
  // This thread does not hold the lock while it waits, so other threads can open and close other pools. If another
  // handle of this memory is made during the wait, the wait was not necessary, but does no harm.
  if (is_last && of->context_ != nullptr && of->may_free_) {
    const current_context within(of->api_, of->context_);
    of->wait_for_own_work();
  }
  const std::lock_guard held(g_lock);
  if (--of->uses_ != 0) return;
  std::erase(g_open, of);
  delete of;
}

result<void> device_memory::enter(cu_device device) {
  device_ = device;
  if (const int answer = api_.primary_retain(&context_, device); answer != kSuccess) {
    context_ = nullptr;
    return failed_call(api_, answer, "cuDevicePrimaryCtxRetain", "CUDA: device %d", device);
  }
  return {};
}

result<void> device_memory::map_vmm(std::uint64_t bytes, int flags) {
  if (const int answer = api_.vmm_reserve(&base_, bytes, 0, 0, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemAddressReserve", "CUDA: addresses for %llu bytes",
                       static_cast<unsigned long long>(bytes));
  }
  reserved_ = bytes;
  if (const int answer = api_.vmm_map(base_, bytes, 0, allocation_, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemMap", "CUDA: mapping %llu bytes", static_cast<unsigned long long>(bytes));
  }
  is_mapped_ = true;
  const cu_access access{{kLocationDevice, device_}, flags};
  if (const int answer = api_.vmm_access(base_, bytes, &access, 1); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemSetAccess", "CUDA: access from device %d", device_);
  }
  return {};
}

result<void> device_memory::make_vmm(std::uint64_t bytes, facts& about) {
  const cu_allocation of = allocation_on(device_);
  std::size_t unit = 0;
  if (const int answer = api_.granularity(&unit, &of, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemGetAllocationGranularity", "CUDA: device %d", device_);
  }
  about.total = round_up(bytes, unit != 0 ? unit : 1);
  if (const int answer = api_.vmm_create(&allocation_, about.total, &of, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemCreate", "CUDA: %llu bytes on device %d",
                       static_cast<unsigned long long>(about.total), device_);
  }
  has_allocation_ = true;
  int fd = -1;
  if (const int answer = api_.vmm_export(&fd, allocation_, kHandlePosixFd, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemExportToShareableHandle", "CUDA: a descriptor of the memory");
  }
  fd_ = ipc::detail::descriptor(fd);
  return map_vmm(about.total, kAccessReadWrite);
}

result<void> device_memory::make_legacy(std::uint64_t bytes, facts& about) {
  bytes = round_up(bytes, kLegacyBlock);
  if (const int answer = api_.memory_alloc(&base_, bytes); answer != kSuccess) {
    base_ = 0;
    return failed_call(api_, answer, "cuMemAlloc", "CUDA: %llu bytes on device %d",
                       static_cast<unsigned long long>(bytes), device_);
  }
  return export_legacy(bytes, about);
}

result<void> device_memory::take_existing(std::uint64_t bytes, cu_address at, facts& about) {
  int device = 0;
  if (const int answer = api_.pointer_attribute(&device, kPointerDevice, at); answer != kSuccess) {
    error why = failed_call(api_, answer, "cuPointerGetAttribute", "CUDA: pool_options::existing, 0x%llx", at);
    why.code = errc::bad_option;
    return why;
  }
  if (device != device_) {
    return failure(errc::bad_option,
                   "CUDA: pool_options::existing is memory of device %d, and the pool is of device %d", device,
                   device_);
  }
  base_ = at;
  is_of_the_program_ = true;
  return export_legacy(bytes, about);
}

// Before the call, base_ is the address of the first buffer. After the call, base_ is the start of the allocation that
// contains the first buffer, and offset_ is the distance from there to the first buffer.
result<void> device_memory::export_legacy(std::uint64_t bytes, facts& about) {
  int is_capable = 0;
  if (const int answer = api_.pointer_attribute(&is_capable, kPointerLegacyIpc, base_);
      answer == kSuccess && is_capable == 0) {
    if (is_of_the_program_) {
      return failure(
          errc::unsupported,
          "CUDA: the memory at 0x%llx cannot be shared by a legacy handle (pointer attribute %d), because it "
          "is not of cuMemAlloc() or cudaMalloc(): memory of cudaMallocAsync() and of PyTorch's "
          "expandable_segments:True is not; send a copy in a buffer of the pool's own memory",
          base_, static_cast<int>(kPointerLegacyIpc));
    }
    return failure(
        errc::unsupported,
        "CUDA: memory of cuMemAlloc on device %d cannot be shared by a legacy handle (pointer attribute %d): use "
        "memory::vmm_fd",
        device_, static_cast<int>(kPointerLegacyIpc));
  }
  // The handle names the whole allocation, which may be larger than the memory that was asked for.
  cu_address start = 0;
  std::size_t size = 0;
  if (const int answer = api_.memory_range(&start, &size, base_); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemGetAddressRange", "CUDA: the allocation of a pool");
  }
  about.offset = base_ - start;
  about.total = size;
  if (bytes > about.total - about.offset) {
    return failure(
        errc::bad_option,
        "CUDA: pool_options::existing: %llu bytes are needed, and the allocation has %llu after that address",
        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(about.total - about.offset));
  }
  if (const int answer = api_.ipc_memory_handle(&about.handle, start); answer != kSuccess) {
    return failed_call(api_, answer, "cuIpcGetMemHandle", "CUDA: a handle of the memory");
  }
  offset_ = about.offset;
  base_ = start;
  return {};
}

result<void> device_memory::make_events(std::uint32_t buffers) {
  for (std::uint32_t i = 0; i < buffers; ++i) {
    cu_event event = nullptr;
    if (const int answer = api_.event_create(&event, kEventDisableTiming); answer != kSuccess) {
      return failed_call(api_, answer, "cuEventCreate", "CUDA: the events of buffer %u", i);
    }
    last_use_.push_back(event);
  }
  return {};
}

result<void> device_memory::map_words(const control_block& of) {
  words_bytes_ = round_up(of.size(), ipc::detail::kPage);
  void* const at = mmap(nullptr, words_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, of.fd(), 0);
  if (at == MAP_FAILED) return from_queue(ipc::detail::failed_call(errno, "CUDA: a pool's control block: mmap"));
  words_ = static_cast<char*>(at);
  if (const int answer = api_.host_register(words_, words_bytes_, kHostRegisterMapped); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemHostRegister", "CUDA: the control block of a pool, %zu bytes", words_bytes_);
  }
  is_registered_ = true;
  if (const int answer = api_.host_address(&words_at_, words_, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemHostGetDevicePointer", "CUDA: the control block of a pool");
  }
  buffers_ = static_cast<std::uint32_t>((of.size() - sizeof(control_page)) / sizeof(buffer_control));
  return {};
}

void device_memory::release_streams() const {
  const bool is_abandoned = is_producer_dead();
  for (std::uint32_t i = 0; i < buffers_; ++i) {
    buffer_control& one = *reinterpret_cast<buffer_control*>(words_ + control_block::offset_of(i));
    const reader awaited = reader::of(one.awaited.load(std::memory_order_acquire));
    std::uint32_t done = one.done.load(std::memory_order_acquire);
    if (awaited.at == reader::phase::released && !is_reached(done, awaited.message) && has_died(awaited.number)) {
      // The device no longer writes the word, because the reader's process is dead. The buffer gets no later message
      // before the waiting stream goes on. So only processes that release the stream can write the word now, as this
      // process does.
      one.done.compare_exchange_strong(done, awaited.message, std::memory_order_acq_rel);
    }
    if (!is_abandoned) continue;
    std::uint64_t ready = one.ready.load(std::memory_order_acquire);
    const std::uint32_t last = one.sent.load(std::memory_order_acquire) + kAbandoned;
    if (static_cast<std::uint32_t>(ready) == last) continue;
    one.ready.compare_exchange_strong(ready, ready << 32 | last, std::memory_order_acq_rel);
  }
}

result<void> device_memory::take_lock(const control_block& of, std::uint32_t number) {
  control_fd_ = ipc::detail::descriptor(fcntl(of.fd(), F_DUPFD_CLOEXEC, 3));
  if (!control_fd_) return from_queue(ipc::detail::failed_call(errno, "CUDA: a descriptor of a pool's control block"));
  lives_ = ipc::detail::member_lock_view(control_fd_.get());
  ipc::detail::member_lock lock;
  if (auto opened = lock.open(control_fd_.get(), ""); !opened) return from_queue(opened.error());
  // Without /proc, the lock cannot be taken. Then no other process notices the death of this process.
  if (!lock.is_open() || number >= kNoNumber) return {};
  const auto taken = lock.take(number);
  if (!taken) return from_queue(taken.error());
  if (!taken.value()) return {};
  auto kept = lock.keep();
  if (!kept) return from_queue(kept.error());
  lock_page_ = *kept;
  number_ = number;
  return {};
}

bool device_memory::has_died(std::uint32_t number) const {
  return number != kNoNumber && number != number_ && lives_.can_tell() &&
         lives_.of(number) == ipc::detail::member_state::dead;
}

result<device_memory::use> device_memory::create(const driver& api, const pool_options& wanted, control_block& on) {
  cu_device device = 0;
  if (const int answer = api.device_get(&device, wanted.device); answer != kSuccess) {
    error why = failed_call(api, answer, "cuDeviceGet", "CUDA: device %d", wanted.device);
    if (answer == kInvalidDevice) why.code = errc::no_device;
    return why;
  }
  if (auto refused = refuse_device(api, device, wanted.kind, surroundings::here())) return *refused;
  facts about{};
  about.kind = wanted.kind;
  about.buffers = wanted.buffers;
  about.pid = static_cast<std::uint32_t>(getpid());
  about.pid_namespace = ipc::detail::own_pid_namespace();
  about.bytes = wanted.bytes;
  about.stride = round_up(wanted.bytes, kAlignment);
  if (getrandom(about.id, sizeof about.id, 0) != sizeof about.id)
    return failure(errc::driver, "CUDA: the kernel gave no random number for the id of the pool");
  if (const int answer = api.device_uuid(&about.uuid, device); answer != kSuccess) {
    return failed_call(api, answer, "cuDeviceGetUuid", "CUDA: device %d", device);
  }

  const std::lock_guard held(g_lock);
  device_memory* const made = new device_memory(api);
  const auto give_up = [made](const error& why) {
    delete made;
    return why;
  };
  made->is_made_here_ = true;
  made->kind_ = wanted.kind;
  made->stride_ = about.stride;
  std::memcpy(made->id_, about.id, sizeof about.id);
  if (auto entered = made->enter(device); !entered) return give_up(entered.error());
  const current_context within(api, made->context_);
  const std::uint64_t bytes = about.stride * wanted.buffers;
  auto memory_made = wanted.kind == memory::vmm_fd ? made->make_vmm(bytes, about)
                     : wanted.existing != 0        ? made->take_existing(bytes, wanted.existing, about)
                                                   : made->make_legacy(bytes, about);
  if (!memory_made) return give_up(memory_made.error());
  if (auto words = made->map_words(on); !words) return give_up(words.error());
  if (auto events = made->make_events(wanted.buffers); !events) return give_up(events.error());
  if (auto locked = made->take_lock(on, 0); !locked) return give_up(locked.error());
  about.has_lock = made->number_ == 0 ? 1 : 0;
  on.publish(about);
  made->may_free_ = false;
  g_open.push_back(made);
  return use(made);
}

result<void> device_memory::open_memory(const facts& about) {
  if (kind_ == memory::legacy) {
    if (const int answer = api_.ipc_memory_open(&base_, about.handle, kLazyPeerAccess); answer != kSuccess) {
      base_ = 0;
      return failed_call(api_, answer, "cuIpcOpenMemHandle", "CUDA: the pool of process %u", about.pid);
    }
    return {};
  }
  // The driver expects the number of the descriptor in the pointer argument, and not a pointer to the number.
  void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd_.get()));
  if (const int answer = api_.vmm_import(&allocation_, shareable, kHandlePosixFd); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemImportFromShareableHandle", "CUDA: the pool of process %u", about.pid);
  }
  has_allocation_ = true;
  return map_vmm(about.total, kAccessRead);
}

result<device_memory::use> device_memory::import(const driver& api, const control_block& from,
                                                 ipc::detail::descriptor fd) {
  const facts& about = from.about();
  const surroundings where = surroundings::here();
  if (auto refused = refuse_import(where, about)) return *refused;
  auto device = find_device(api, about.uuid, where);
  if (!device) return device.error();
  if (auto refused = refuse_device(api, *device, about.kind, where)) return *refused;
  if ((about.kind == memory::vmm_fd) != static_cast<bool>(fd)) {
    return failure(errc::untrusted, "CUDA: the pool was sent %s",
                   fd ? "with one descriptor too many" : "without its memory's descriptor");
  }

  const std::lock_guard held(g_lock);
  for (device_memory* const known : g_open) {
    if (std::memcmp(known->id_, about.id, sizeof about.id) != 0 || known->is_closed()) continue;
    // Every reader knows the id of its pool. So a reader could make a control block with the same id and with other
    // facts.
    if (!is_same_file(known->control_fd_.get(), from.fd())) {
      return failure(errc::untrusted, "CUDA: the pool's control block has the id of another pool that is open here");
    }
    ++known->uses_;
    return use(known);
  }
  device_memory* const made = new device_memory(api);
  const auto give_up = [made](const error& why) {
    delete made;
    return why;
  };
  if (auto locked = made->take_lock(from, from.next_number()); !locked) return give_up(locked.error());
  made->has_lock_ = about.has_lock != 0;
  if (made->is_producer_dead()) {
    error why = failure(errc::producer_died, "CUDA: process %u, which made this pool, has ended", about.pid);
    why.pid = about.pid;
    return give_up(why);
  }
  made->kind_ = about.kind;
  made->offset_ = about.offset;
  made->stride_ = about.stride;
  made->fd_ = std::move(fd);
  std::memcpy(made->id_, about.id, sizeof about.id);
  if (auto entered = made->enter(*device); !entered) return give_up(entered.error());
  const current_context within(api, made->context_);
  if (auto opened = made->open_memory(about); !opened) return give_up(opened.error());
  if (auto words = made->map_words(from); !words) return give_up(words.error());
  if (auto events = made->make_events(about.buffers); !events) return give_up(events.error());
  g_open.push_back(made);
  return use(made);
}

// Waits for the work of this process on the memory. If memory is unmapped while the device works on it, the work fails
// with error 700, and the context cannot be used any more (seen with driver 580.159).
void device_memory::wait_for_own_work() const {
  const auto is_busy = [this](cu_event event) { return api_.event_query(event) == kNotReady; };
  while (std::any_of(last_use_.begin(), last_use_.end(), is_busy)) {
    release_streams();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Errors of the driver are ignored, because a destructor cannot report them. At the end of the process, the driver may
// already have shut down.
device_memory::~device_memory() {
  if (!may_free_) return;
  if (context_ != nullptr) {
    {
      const current_context within(api_, context_);
      wait_for_own_work();
      if (kind_ == memory::legacy && base_ != 0 && !is_of_the_program_) {
        (void)(is_made_here_ ? api_.memory_free(base_ + offset_) : api_.ipc_memory_close(base_));
      }
      if (is_mapped_) (void)api_.vmm_unmap(base_, reserved_);
      if (reserved_ != 0) (void)api_.vmm_unreserve(base_, reserved_);
      if (has_allocation_) (void)api_.vmm_release(allocation_);
      for (cu_event const event : last_use_) (void)api_.event_destroy(event);
      if (is_registered_) (void)api_.host_unregister(words_);
    }
    (void)api_.primary_release(device_);
  }
  if (words_ != nullptr) munmap(words_, words_bytes_);
  // The lock is released last. A free lock tells other processes that this process has no more work on the memory.
  ipc::detail::member_lock::end(lock_page_);
}

}  // namespace forksight::ipc_cuda::detail
