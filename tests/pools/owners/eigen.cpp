// The workers of an Eigen::ThreadPool run the tasks that the parent schedules. The child does not have these workers,
// so no thread runs the tasks that the child schedules. Repaired: the child makes its own pool.
#include <sys/wait.h>
#include <unistd.h>
#include <unsupported/Eigen/CXX11/ThreadPool>

namespace {

void run_one(Eigen::ThreadPool& pool) {
  Eigen::Barrier done(1);
  pool.Schedule([&done] { done.Notify(); });
  done.Wait();
}

}  // namespace

int main() {
  Eigen::ThreadPool pool(2);
  run_one(pool);
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    Eigen::ThreadPool own(2);
    run_one(own);
#else
    run_one(pool);
#endif
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
