#include "inspect/python_semaphores.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "files/budgets.hpp"

namespace forksight::inspect {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::string_view kTypeName = "SemLock";

// The fields of a SemLock from `handle` on.
struct RawSemLock {
  std::uint64_t handle;
  std::uint64_t last_tid;
  std::int32_t count;
  std::int32_t maxvalue;
  std::int32_t kind;
};
constexpr std::int32_t kRecursiveMutex = 0;
constexpr std::int32_t kSemaphore = 1;

// The header of an object: 16 bytes, and 32 in a build without the GIL (3.13 and later). It ends with the pointer to
// the type.
constexpr std::uint64_t kHeader = 16;
constexpr std::uint64_t kHeaderWithoutGil = 32;

// tp_name follows the header and ob_size of the type.
bool has_name_of_sem_lock(const image::Memory& memory, std::uint64_t type, std::uint64_t header) {
  const auto name = memory.value<std::uint64_t>(type + header + kWord);
  if (!name || *name == 0) return false;
  const std::vector<std::byte> bytes = memory.bytes(*name, 64);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = text.find('\0');
  return end != std::string_view::npos && text.substr(0, end).ends_with(kTypeName);
}

// True if the object was not freed. A freed object keeps all fields except its first word, and a new semaphore may have
// the address of the freed object's semaphore. Only the first word shows the difference: in a living object, this word
// is the number of references. In a freed object, this word is null or the address of another free object. From 3.14
// on, this word also has flags in its upper 16 bits.
bool is_alive(const image::Memory& memory, std::uint64_t object) {
  constexpr std::uint64_t kMostReferences = std::uint64_t{1} << 20U;
  const auto word = memory.value<std::uint64_t>(object);
  const std::uint64_t references = word.value_or(0) & 0xffff'ffff'ffffU;
  return references != 0 && references <= kMostReferences;
}

// A SemLock object that was found in memory. `is_certain` is false in a build without the GIL, where a freed object
// looks like a living one.
struct Found {
  SemLock object;
  bool is_certain = false;
};

std::optional<Found> read_at(const image::Memory& memory, std::uint64_t address, std::uint64_t semaphore) {
  const auto raw = memory.value<RawSemLock>(address);
  if (!raw || raw->handle != semaphore || raw->maxvalue <= 0) return std::nullopt;
  if (raw->kind != kRecursiveMutex && raw->kind != kSemaphore) return std::nullopt;
  const auto type = memory.value<std::uint64_t>(address - kWord);
  if (!type) return std::nullopt;
  const SemLock object{address, raw->last_tid, raw->count, raw->kind == kRecursiveMutex || raw->maxvalue == 1};
  if (has_name_of_sem_lock(memory, *type, kHeader)) {
    if (!is_alive(memory, address - kHeader)) return std::nullopt;
    return Found{object, true};
  }
  if (has_name_of_sem_lock(memory, *type, kHeaderWithoutGil)) return Found{object, false};
  return std::nullopt;
}

const proc::Mapping* find_semaphore(const image::Image& image, const proc::Mapping& file) {
  const auto found = std::ranges::find_if(image.mappings, [&](const proc::Mapping& one) {
    return one.shared && one.inode == file.inode && one.device == file.device && one.offset == file.offset;
  });
  return found == image.mappings.end() ? nullptr : &*found;
}

std::int32_t tid_of_pointer(const image::Image& image, std::uint64_t pointer) {
  const auto thread = std::ranges::find(image.threads, pointer, &image::Thread::fs_base);
  return thread == image.threads.end() || thread->has_ended ? 0 : thread->tid;
}

bool is_named_semaphore(const model::Wait& wait) {
  return wait.is_stuck && wait.is_shared && wait.kind == model::WaitKind::kFutex &&
         wait.use == model::FutexUse::kUnknown && wait.path.find("/sem.") != std::string::npos;
}

// True if the thread is in put() of a multiprocessing.Queue, and waits there for a free place in the queue. If the
// queue has only one place, the semaphore that counts the free places looks like a lock. (billiard has the same file.)
bool waits_for_place_in_queue(const model::Wait& wait) {
  return std::ranges::any_of(wait.stack.frames, [](const model::Frame& frame) {
    return frame.function == "put" &&
           (frame.file.ends_with("multiprocessing/queues.py") || frame.file.ends_with("billiard/queues.py"));
  });
}

class HolderSearch {
 public:
  explicit HolderSearch(Scene& scene) : scene_(scene) {}

  void explain(std::size_t subject, model::Wait& wait) {
    const image::Image& image = scene_.subjects[subject].image;
    const proc::Mapping* const file = image.mapping_of(wait.object);
    if (file == nullptr || file->inode == 0) return;
    std::vector<std::size_t> holders;
    std::vector<SemLock> objects;
    bool is_released_elsewhere = false;
    for (std::size_t other = 0; other < scene_.subjects.size(); ++other) {
      const auto object = find(other, *file, wait.object - file->start);
      if (!object) {
        // If the process uses the semaphore, but its object was not found, it is not known whether the process has the
        // lock.
        if (find_semaphore(scene_.subjects[other].image, *file) != nullptr) return;
        continue;
      }
      if (object->count < 0) is_released_elsewhere = true;
      if (object->count > 0) holders.push_back(other);
      objects.push_back(*object);
    }
    // A process that is not among the subjects may have acquired the lock.
    const bool sees_all = std::ranges::all_of(wait.wakers, [&](const model::Waker& waker) {
      return std::ranges::any_of(scene_.subjects, [&](const Subject& one) { return one.image.pid == waker.pid; });
    });
    if (objects.empty() || !sees_all) return;
    if (!std::ranges::all_of(objects, &SemLock::is_lock) || waits_for_place_in_queue(wait)) {
      wait.semaphore_use = model::SemaphoreUse::kCounts;
      return;
    }
    // A process may release a lock that it did not acquire. Then the counts do not show which process has the lock.
    if (is_released_elsewhere || holders.size() > 1) return;
    if (holders.empty()) {
      wait.semaphore_use = model::SemaphoreUse::kLockWithoutHolder;
      return;
    }
    const image::Image& holder = scene_.subjects[holders.front()].image;
    const auto held = std::ranges::find_if(objects, [](const SemLock& one) { return one.count > 0; });
    const std::int32_t tid = tid_of_pointer(holder, held->thread);
    if (tid == 0) return;  // the thread has ended, so none of the living threads holds the lock
    wait.semaphore_use = model::SemaphoreUse::kLockHeld;
    wait.wakers.push_back({holder.pid, tid, -1, model::kViaSemaphoreLock});
  }

 private:
  std::optional<SemLock> find(std::size_t subject, const proc::Mapping& file, std::uint64_t offset) {
    const image::Image& image = scene_.subjects[subject].image;
    const proc::Mapping* const mapping = find_semaphore(image, file);
    if (mapping == nullptr) return std::nullopt;
    auto object = find_sem_lock(image, mapping->start + offset, hint_, budget_);
    if (object) hint_ = object->handle_address;
    return object;
  }

  Scene& scene_;
  // SemLock::handle_address in the process that was looked at last. In a forked child, this address is the same as in
  // its parent.
  std::uint64_t hint_ = 0;
  std::uint64_t budget_ = files::kMaxSemaphoreSearchBytes;
};

}  // namespace

bool may_have_objects(const proc::Mapping& mapping) {
  return mapping.readable && mapping.writable && !mapping.shared && mapping.inode == 0 &&
         (mapping.path.empty() || mapping.path == "[heap]" || mapping.path.starts_with("[anon"));
}

std::optional<SemLock> find_sem_lock(const image::Image& image, std::uint64_t semaphore, std::uint64_t hint,
                                     std::uint64_t& budget) {
  // In a forked child the object has the same address as in its parent.
  if (hint != 0) {
    if (const auto found = read_at(*image.memory, hint, semaphore)) return found->object;
  }
  std::optional<SemLock> only;
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 20U;
  for (const proc::Mapping& mapping : image.mappings) {
    if (!may_have_objects(mapping)) continue;
    for (std::uint64_t at = mapping.start; at < mapping.end; at += kChunk) {
      const std::uint64_t size = std::min(kChunk, mapping.end - at);
      if (size > budget) return std::nullopt;
      budget -= size;
      const std::vector<std::byte> bytes = image.memory->bytes(at, size);
      for (std::size_t offset = 0; offset + kWord <= bytes.size(); offset += kWord) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + offset, kWord);
        if (word != semaphore) continue;
        const auto found = read_at(*image.memory, at + offset, semaphore);
        if (!found) continue;
        if (found->is_certain) return found->object;
        if (only) return std::nullopt;
        only = found->object;
      }
    }
  }
  return only;
}

void find_semaphore_holders(Scene& scene) {
  HolderSearch search(scene);
  for (std::size_t subject = 0; subject < scene.subjects.size(); ++subject) {
    for (model::Wait& wait : scene.model.processes[subject].waits) {
      if (is_named_semaphore(wait)) search.explain(subject, wait);
    }
  }
}

}  // namespace forksight::inspect
