// Mechanism: a worker should set a promise. Before that the worker throws an exception, and catches it itself. The
//            promise still exists, but is not set. Main waits for the future of the promise.
// To blame:  the worker, which catches the exception and ends without setting the promise.
// User sees: main stops in std::future::get(). The worker has ended long before.
// Fix:       call set_exception() in the catch block, or use a std::packaged_task.
// Repaired:  the worker gives the exception to the promise.
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
