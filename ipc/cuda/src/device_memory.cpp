#include "device_memory.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "process.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

// All device memory of this process. The lock is held while memory is opened and closed, so a handle is never opened
// twice at a time. A forked child never takes the lock: it was refused before.
std::mutex g_lock;
std::vector<device_memory*> g_open;

constexpr std::uint64_t kAlignment = 256;
std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

cu_allocation allocation_on(cu_device device) {
  cu_allocation of{};
  of.type = kAllocationPinned;
  of.handle_types = kHandlePosixFd;
  of.location = {kLocationDevice, device};
  return of;
}

}  // namespace

void device_memory::use::reset() {
  device_memory* const of = std::exchange(of_, nullptr);
  if (of == nullptr || !of->mark_.is_ours()) return;
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

result<void> device_memory::map_vmm(std::uint64_t bytes) {
  if (const int answer = api_.vmm_reserve(&base_, bytes, 0, 0, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemAddressReserve", "CUDA: addresses for %llu bytes",
                       static_cast<unsigned long long>(bytes));
  }
  reserved_ = bytes;
  if (const int answer = api_.vmm_map(base_, bytes, 0, allocation_, 0); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemMap", "CUDA: mapping %llu bytes", static_cast<unsigned long long>(bytes));
  }
  is_mapped_ = true;
  const cu_access access{{kLocationDevice, device_}, kAccessReadWrite};
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
  return map_vmm(about.total);
}

result<void> device_memory::make_legacy(std::uint64_t bytes, facts& about) {
  if (const int answer = api_.memory_alloc(&base_, bytes); answer != kSuccess) {
    base_ = 0;
    return failed_call(api_, answer, "cuMemAlloc", "CUDA: %llu bytes on device %d",
                       static_cast<unsigned long long>(bytes), device_);
  }
  int is_capable = 0;
  if (const int answer = api_.pointer_attribute(&is_capable, kPointerLegacyIpc, base_);
      answer == kSuccess && is_capable == 0) {
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
  about.offset = offset_ = base_ - start;
  about.total = size;
  if (const int answer = api_.ipc_memory_handle(&about.handle, start); answer != kSuccess) {
    return failed_call(api_, answer, "cuIpcGetMemHandle", "CUDA: a handle of the memory");
  }
  base_ = start;
  return {};
}

result<void> device_memory::make_events(const card& on) {
  for (std::uint32_t i = 0; i < on.about().buffers; ++i) {
    for (const bool is_ready : {true, false}) {
      cu_event event = nullptr;
      if (const int answer = api_.event_create(&event, kEventDisableTiming | kEventInterprocess); answer != kSuccess) {
        return failed_call(api_, answer, "cuEventCreate", "CUDA: the events of buffer %u", i);
      }
      (is_ready ? ready_ : done_).push_back(event);
      card_buffer& entry = on.buffer(i);
      if (const int answer = api_.ipc_event_handle(is_ready ? &entry.ready : &entry.done, event); answer != kSuccess) {
        return failed_call(api_, answer, "cuIpcGetEventHandle", "CUDA: the events of buffer %u", i);
      }
    }
  }
  return {};
}

result<device_memory::use> device_memory::create(const driver& api, const pool_options& wanted, card& on) {
  cu_device device = 0;
  if (const int answer = api.device_get(&device, wanted.device); answer != kSuccess) {
    error why = failed_call(api, answer, "cuDeviceGet", "CUDA: no device %d", wanted.device);
    if (answer == kInvalidDevice) why.code = errc::no_device;
    return why;
  }
  if (auto refused = refuse_device(api, device, wanted.kind)) return *refused;
  facts about{};
  about.kind = wanted.kind;
  about.buffers = wanted.buffers;
  about.pid = static_cast<std::uint32_t>(getpid());
  about.start = ipc::detail::start_time_of(about.pid);
  about.pid_namespace = ipc::detail::own_pid_namespace();
  about.bytes = wanted.bytes;
  about.stride = round_up(wanted.bytes, kAlignment);
  if (getrandom(about.id, sizeof about.id, 0) != sizeof about.id)
    return failure(errc::driver, "CUDA: no random number for the pool");
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
  auto memory_made = wanted.kind == memory::vmm_fd ? made->make_vmm(bytes, about) : made->make_legacy(bytes, about);
  if (!memory_made) return give_up(memory_made.error());
  on.publish(about);
  if (auto events = made->make_events(on); !events) return give_up(events.error());
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
  // The driver wants the number of the descriptor itself in the pointer argument.
  void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd_.get()));
  if (const int answer = api_.vmm_import(&allocation_, shareable, kHandlePosixFd); answer != kSuccess) {
    return failed_call(api_, answer, "cuMemImportFromShareableHandle", "CUDA: the pool of process %u", about.pid);
  }
  has_allocation_ = true;
  return map_vmm(about.total);
}

result<void> device_memory::open_events(const card& from) {
  for (std::uint32_t i = 0; i < from.about().buffers; ++i) {
    for (const bool is_ready : {true, false}) {
      cu_event event = nullptr;
      const cu_ipc_handle handle = is_ready ? from.buffer(i).ready : from.buffer(i).done;
      if (const int answer = api_.ipc_event_open(&event, handle); answer != kSuccess) {
        return failed_call(api_, answer, "cuIpcOpenEventHandle", "CUDA: the pool of process %u", from.about().pid);
      }
      (is_ready ? ready_ : done_).push_back(event);
    }
  }
  return {};
}

result<device_memory::use> device_memory::import(const driver& api, const card& from, ipc::detail::descriptor fd) {
  const facts& about = from.about();
  const surroundings where = surroundings::here();
  if (auto refused = refuse_import(where, about)) return *refused;
  auto device = find_device(api, about.uuid, where);
  if (!device) return device.error();
  if (auto refused = refuse_device(api, *device, about.kind)) return *refused;
  if ((about.kind == memory::vmm_fd) != static_cast<bool>(fd)) {
    return failure(errc::untrusted, "CUDA: the pool came %s",
                   fd ? "with a descriptor too many" : "without its memory's descriptor");
  }

  const std::lock_guard held(g_lock);
  for (device_memory* const known : g_open) {
    if (std::memcmp(known->id_, about.id, sizeof about.id) != 0 || known->is_closed()) continue;
    ++known->uses_;
    return use(known);
  }
  device_memory* const made = new device_memory(api);
  const auto give_up = [made](const error& why) {
    delete made;
    return why;
  };
  // If the creator is in another pid namespace, its pid means nothing here, so its end is not watched.
  if (about.pid_namespace == where.pid_namespace) made->producer_ = process_watch(about.pid, about.start);
  if (made->producer_.has_ended()) {
    error why = failure(errc::producer_died,
                        "CUDA: process %u, whose pool this is, has ended: its events are gone with it", about.pid);
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
  if (auto events = made->open_events(from); !events) return give_up(events.error());
  g_open.push_back(made);
  return use(made);
}

void device_memory::close_now() {
  const std::lock_guard held(g_lock);
  if (!mark_.is_ours()) return;
  is_closed_.store(true, std::memory_order_release);  // pairs with is_closed()
  close();
}

// The answers of the driver are ignored: nobody could be told, and at the end of the process the driver may already be
// gone.
void device_memory::close() {
  if (context_ == nullptr || (is_made_here_ && !may_free_)) return;
  {
    const current_context within(api_, context_);
    // Events of a dead process are not destroyed: the driver's behaviour is not defined for them.
    if (!is_producer_dead()) {
      for (cu_event const event : ready_) (void)api_.event_destroy(event);
      for (cu_event const event : done_) (void)api_.event_destroy(event);
    }
    if (kind_ == memory::legacy && base_ != 0) {
      (void)(is_made_here_ ? api_.memory_free(base_ + offset_) : api_.ipc_memory_close(base_));
    }
    if (is_mapped_) (void)api_.vmm_unmap(base_, reserved_);
    if (reserved_ != 0) (void)api_.vmm_unreserve(base_, reserved_);
    if (has_allocation_) (void)api_.vmm_release(allocation_);
  }
  (void)api_.primary_release(device_);
  base_ = 0;
  reserved_ = 0;
  is_mapped_ = has_allocation_ = false;
  context_ = nullptr;
}

}  // namespace forksight::ipc_cuda::detail
