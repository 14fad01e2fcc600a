// The objects of a scenario in memory. A fork copies private objects, and does not copy shared ones.
#pragma once

#include <cxxabi.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <future>
#include <string>

#include "control.hpp"
#include "scenario.hpp"

namespace truth {

inline constexpr int kMaxObjects = 48;
inline constexpr int kFirstDescriptor = 100;  // the ends of object N are the descriptors 100 + 2N and 101 + 2N

struct Promise {
  std::promise<void> promise;
  std::shared_future<void> future = promise.get_future().share();
};

union Object {
  pthread_mutex_t mutex;
  pthread_rwlock_t rwlock;
  sem_t semaphore;
  pthread_cond_t condition;
  pthread_barrier_t barrier;
  std::atomic<int> word;
  abi::__guard guard;
  pthread_once_t once;
  Promise* promise;
  int descriptor;  // the descriptor of a file that steps lock; -1 until this process or an ancestor opens the file
  char room[64];
};
static_assert(sizeof(Object) == 64);

void make_objects(const Scenario& scenario, Control& control, bool after_exec);
void init_object(const ObjectSpec& spec, int index);
// Calls the destroy function of libc for a mutex, rwlock, semaphore or condition variable. Does nothing for other
// kinds.
void destroy_object(const ObjectSpec& spec, int index);
Object& object_at(const Scenario& scenario, int index);

// Returns the path of a FIFO, or of a file that steps lock.
std::string path_of(const std::string& object);
// Moves a descriptor to this number, and closes the old number.
void place(int fd, int number);

inline int read_end(int index) { return kFirstDescriptor + 2 * index; }
inline int write_end(int index) { return kFirstDescriptor + 2 * index + 1; }

}  // namespace truth
