#include "objects.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "steps.hpp"

namespace truth {
namespace {

alignas(64) char g_private[kMaxObjects * sizeof(Object)];
Object* g_shared = nullptr;

void init_mutex(const ObjectSpec& spec, pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (spec.shared) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (spec.has("recursive")) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  if (spec.has("errorcheck")) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  if (spec.has("adaptive")) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  if (spec.has("robust")) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
}

void init_rwlock(const ObjectSpec& spec, pthread_rwlock_t* rwlock) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  if (spec.shared) pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (spec.has("writer")) pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(rwlock, &attributes);
}

void init_condition(const ObjectSpec& spec, pthread_cond_t* condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  if (spec.shared) pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(condition, &attributes);
}

void init_barrier(const ObjectSpec& spec, pthread_barrier_t* barrier) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  if (spec.shared) pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(barrier, &attributes, static_cast<unsigned>(spec.number));
}

void open_ends(const ObjectSpec& spec, int index) {
  int ends[2] = {-1, -1};
  if (spec.kind == ObjectKind::kEventfd) {
    place(eventfd(static_cast<unsigned>(spec.number), 0), read_end(index));
    return;
  }
  if (spec.kind == ObjectKind::kTimerfd) {
    place(timerfd_create(CLOCK_MONOTONIC, 0), read_end(index));
    return;
  }
  const int made = spec.kind == ObjectKind::kPipe ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  if (made != 0) fail("cannot make a pipe or a socket pair");
  place(ends[0], read_end(index));
  place(ends[1], write_end(index));
}

bool has_descriptors(ObjectKind kind) {
  return kind == ObjectKind::kPipe || kind == ObjectKind::kSocket || kind == ObjectKind::kEventfd ||
         kind == ObjectKind::kTimerfd || kind == ObjectKind::kChannel;
}

// Maps shared memory only if the scenario needs it, because a verdict may depend on shared memory.
void map_shared(const Scenario& scenario) {
  if (std::none_of(scenario.objects.begin(), scenario.objects.end(),
                   [](const ObjectSpec& spec) { return spec.shared; }))
    return;
  void* shared = mmap(nullptr, sizeof(Object) * kMaxObjects, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("cannot map the shared objects");
  g_shared = static_cast<Object*>(shared);
}

}  // namespace

std::string path_of(const std::string& object) { return std::string(g_play->control_path) + "." + object; }

void place(int fd, int number) {
  if (fd < 0 || dup2(fd, number) != number) fail("cannot place a descriptor");
  close(fd);
}

Object& object_at(const Scenario& scenario, int index) {
  const ObjectSpec& spec = scenario.objects[static_cast<size_t>(index)];
  const int place = spec.at.empty() ? index : scenario.object_of(spec.at);
  return spec.shared ? g_shared[place] : reinterpret_cast<Object*>(g_private)[place];
}

void init_object(const ObjectSpec& spec, int index) {
  Object& object = object_at(g_play->scenario, index);
  if (spec.kind == ObjectKind::kMutex) init_mutex(spec, &object.mutex);
  if (spec.kind == ObjectKind::kRwlock) init_rwlock(spec, &object.rwlock);
  if (spec.kind == ObjectKind::kSemaphore)
    sem_init(&object.semaphore, spec.shared ? 1 : 0, static_cast<unsigned>(spec.number));
  if (spec.kind == ObjectKind::kCondition) init_condition(spec, &object.condition);
  if (spec.kind == ObjectKind::kBarrier) init_barrier(spec, &object.barrier);
  if (spec.kind == ObjectKind::kWord) new (&object.word) std::atomic<int>(spec.number);
  if (spec.kind == ObjectKind::kGuard) object.guard = 0;
  if (spec.kind == ObjectKind::kOnce) object.once = PTHREAD_ONCE_INIT;
  if (spec.kind == ObjectKind::kFuture) object.promise = new Promise;
  if (spec.kind == ObjectKind::kFile) object.descriptor = -1;
}

void destroy_object(const ObjectSpec& spec, int index) {
  Object& object = object_at(g_play->scenario, index);
  if (spec.kind == ObjectKind::kMutex) pthread_mutex_destroy(&object.mutex);
  if (spec.kind == ObjectKind::kRwlock) pthread_rwlock_destroy(&object.rwlock);
  if (spec.kind == ObjectKind::kSemaphore) sem_destroy(&object.semaphore);
  if (spec.kind == ObjectKind::kCondition) pthread_cond_destroy(&object.condition);
}

void make_objects(const Scenario& scenario, Control& control, bool after_exec) {
  if (scenario.objects.size() > kMaxObjects) fail("too many objects");
  map_shared(scenario);
  // A program that was started again has other addresses. The judge needs the addresses of the first program.
  if (!after_exec) {
    control.private_objects.store(reinterpret_cast<uint64_t>(g_private));
    control.shared_objects.store(reinterpret_cast<uint64_t>(g_shared));
    control.object_size = sizeof(Object);
  }
  for (size_t i = 0; i < scenario.objects.size(); ++i) {
    const ObjectSpec& spec = scenario.objects[i];
    if (!has_descriptors(spec.kind) && spec.at.empty()) init_object(spec, static_cast<int>(i));
    if (spec.kind == ObjectKind::kFifo && !after_exec && mkfifo(path_of(spec.name).c_str(), 0600) != 0)
      fail("cannot make a FIFO");
    if (has_descriptors(spec.kind) && !after_exec) open_ends(spec, static_cast<int>(i));
  }
}

}  // namespace truth
