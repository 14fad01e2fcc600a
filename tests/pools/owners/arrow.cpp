// The parent runs a task on Arrow's pool of CPU threads. The child has none of these threads, and waits for a task that
// it submits to the same pool. ARROW_REGISTER_ATFORK=0 keeps Arrow from registering fork handlers, so Arrow does not
// notice the fork. Repaired: Arrow registers its fork handlers, which make a new pool in the child.
#include <arrow/util/future.h>
#include <arrow/util/thread_pool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

bool run_one(arrow::internal::ThreadPool& pool) {
  const auto task = pool.Submit([] { return 7; });
  return task.ok() && task->result().ok() && *task->result() == 7;
}

}  // namespace

int main() {
#ifndef REPAIRED
  setenv("ARROW_REGISTER_ATFORK", "0", 1);
#endif
  arrow::internal::ThreadPool& pool = *arrow::internal::GetCpuThreadPool();
  if (!run_one(pool)) return 1;
  // In the child, the pool starts a thread for a task only if the pool believes that all its threads are busy. So the
  // parent waits until the pool is idle. Then the child's pool starts no thread.
  pool.WaitForIdle();
  const pid_t child = fork();
  if (child == 0) _exit(run_one(pool) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
