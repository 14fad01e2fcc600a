// Mechanism: two trainers change the same parameters in shared memory. They take no lock, as the method Hogwild
//            intends. The parent uses OpenMP for a first evaluation, and then forks the trainers. The first parallel
//            region of each trainer waits for the pool that only the parent has.
// To blame:  fork() after a parallel region of libgomp in the same thread. The shared parameters are not the cause.
// User sees: all trainers stop in their first step, at 0 % CPU. The parent waits for them.
// Fix:       start the trainers before the first parallel region, or by exec. Or pause OpenMP before the fork.
// Repaired:  there is no evaluation before the trainers. With -DFORKSERVER a server forks the trainers. The server was
//            forked before the evaluation.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" merged=2
// EXPECT-STACK: culprit loss@region main@evaluate
// EXPECT-STACK: stack step@step train@train
// EXPECT-CURED: stdout="the loss has fallen"
// EXPECT-BARE(forkserver): ok
// EXPECT-NONE(forkserver)
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <new>

#include "../baton.h"

constexpr int kParameters = 64;
constexpr int kSteps = 200;
constexpr int kTrainers = 2;

// Every trainer reads and writes all parameters at any time. Each parameter is one atomic word. A trainer may overwrite
// what the other one has written.
struct Model {
  std::atomic<float> parameter[kParameters];
};

[[gnu::noinline]] double loss(const Model& model) {
  double sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)  // MARK: region
  for (int i = 0; i < kParameters; ++i) {
    const double wrong = model.parameter[i].load(std::memory_order_relaxed) - i;
    sum += wrong * wrong;
  }
  return sum;
}

[[gnu::noinline]] void step(Model& model) {
#pragma omp parallel for num_threads(2)  // MARK: step
  for (int i = 0; i < kParameters; ++i) {
    const float now = model.parameter[i].load(std::memory_order_relaxed);
    model.parameter[i].store(now - 0.05F * 2 * (now - static_cast<float>(i)), std::memory_order_relaxed);
  }
}

[[gnu::noinline]] int train(Model& model) {
  for (int i = 0; i < kSteps; ++i) step(model);  // MARK: train
  return 0;
}

int start_trainers(Model& model) {
  pid_t trainers[kTrainers];
  for (pid_t& trainer : trainers) {
    trainer = fork();
    if (trainer == 0) _exit(train(model));
  }
  int failed = 0;
  for (const pid_t trainer : trainers) failed |= end_of(trainer);
  return failed;
}

#ifdef FORKSERVER
pid_t start_server(Model& model, baton go) {
  const pid_t server = fork();
  if (server != 0) return server;
  baton_wait(go);
  _exit(start_trainers(model));
}
#endif

int main() {
  void* const memory = mmap(nullptr, sizeof(Model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  auto* const model = new (memory) Model{};
  double before = kParameters * kParameters;
#ifdef FORKSERVER
  const baton go = baton_make();
  const pid_t server = start_server(*model, go);
#endif
#ifndef REPAIRED
  before = loss(*model);  // MARK: evaluate
#endif
#ifdef FORKSERVER
  baton_pass(go);
  const int failed = end_of(server);
#else
  const int failed = start_trainers(*model);
#endif
  const bool has_fallen = loss(*model) < before / 100;
  puts(has_fallen ? "the loss has fallen" : "the loss has not fallen");
  return failed != 0 || !has_fallen ? 1 : 0;
}
