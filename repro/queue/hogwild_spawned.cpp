// Mechanism: none. As in hogwild, but the trainers are started by exec. The trainers map the parameters from a
//            descriptor, and get the batches through a queue. The parent has used OpenMP before it starts the trainers.
// To blame:  nobody. An exec removes the copies of the parent's pool, locks and handles.
// User sees: nothing.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <fcntl.h>
#include <sys/mman.h>
#include <forksight/ipc/queue.hpp>

#include <atomic>
#include <new>
#include <string>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

constexpr int kParameters = 64;
constexpr int kBatches = 40;
constexpr int kTrainers = 2;

struct Model {
  std::atomic<float> parameter[kParameters];
};

static Model* map(int fd) {
  void* const memory = mmap(nullptr, sizeof(Model), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) abort();
  return static_cast<Model*>(memory);
}

static double loss(const Model& model) {
  double sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
  for (int i = 0; i < kParameters; ++i) {
    const double wrong = model.parameter[i].load(std::memory_order_relaxed) - i;
    sum += wrong * wrong;
  }
  return sum;
}

static int train(int parameters, int batches) {
  Model* const model = map(parameters);
  auto queue = ipc::queue::attach(batches, ipc::role::consumer);
  if (!queue) return 2;
  for (;;) {
    auto batch = queue->receive(ipc::deadline::after(20s));
    if (!batch) return batch.error().code == ipc::errc::closed ? 0 : 3;
    const float rate = *static_cast<const float*>(batch->data());
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < kParameters; ++i) {
      const float now = model->parameter[i].load(std::memory_order_relaxed);
      model->parameter[i].store(now - rate * (now - static_cast<float>(i)), std::memory_order_relaxed);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 3) return train(std::stoi(argv[1]), std::stoi(argv[2]));
  const int parameters = memfd_create("parameters", 0);
  if (parameters < 0 || ftruncate(parameters, sizeof(Model)) != 0) return 2;
  auto* const model = new (map(parameters)) Model{};
  const double before = loss(*model);
  auto queue = ipc::queue::create({});
  if (!queue) return 3;
  pid_t trainers[kTrainers];
  for (pid_t& trainer : trainers) {
    trainer = fork();
    if (trainer != 0) continue;
    const int batches = dup(queue->fd());  // dup() clears FD_CLOEXEC, so the trainer has this descriptor
    execl("/proc/self/exe", "trainer", std::to_string(parameters).c_str(), std::to_string(batches).c_str(), nullptr);
    _exit(126);
  }
  const float rate = 0.1F;
  for (int i = 0; i < kBatches; ++i) {
    if (!queue->send_copy(&rate, sizeof rate, ipc::deadline::after(20s))) return 4;
  }
  (void)queue->close_producer();
  int failed = 0;
  for (const pid_t trainer : trainers) failed |= end_of(trainer);
  return failed == 0 && loss(*model) < before / 100 ? 0 : 1;
}
