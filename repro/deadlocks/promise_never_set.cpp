// Mechanism: a worker is to set a promise, throws before it does, and catches what it threw. The promise lives on, unset,
//            and main waits for its future.
// To blame:  the worker's way out.
// User sees: main stops in std::future::get(); the worker has ended long ago.
// Fix:       set_exception() in the catch, or a std::packaged_task.
// Repaired:  the exception is given to the promise.
//
// EXPECT-BARE: hang
// EXPECT: deadlock proven/unknown hang culprit="its only thread" victims=0
// EXPECT-STACK: stack main@get
#include <future>
#include <stdexcept>
#include <thread>

namespace {

void compute(std::promise<int>& answer) {
  try {
    throw std::runtime_error("no input");
  } catch (const std::exception&) {
#ifdef REPAIRED
    answer.set_exception(std::current_exception());
#else
    (void)answer;
#endif
  }
}

}  // namespace

int main() {
  std::promise<int> answer;
  std::future<int> future = answer.get_future();
  std::thread worker([&answer] { compute(answer); });
  worker.join();
  try {
    return future.get();  // MARK: get
  } catch (const std::runtime_error&) {
    return 0;
  }
}
