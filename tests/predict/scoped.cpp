// predict_scoped: std::scoped_lock takes several mutexes, in any order. It waits for one mutex only while it holds none
// of the others. Then it tries to lock the others, without waiting. If a try fails, it releases the mutexes that it has
// taken.
#include <mutex>
#include <thread>

namespace {

std::mutex from_mu;
std::mutex to_mu;
std::mutex third_mu;

void work(int turns) {
  for (int i = 0; i < turns; ++i) {
    const std::scoped_lock forwards(from_mu, to_mu, third_mu);
  }
  for (int i = 0; i < turns; ++i) {
    const std::scoped_lock backwards(third_mu, to_mu, from_mu);
  }
}

}  // namespace

int main() {
  std::thread one(work, 200);
  std::thread other(work, 200);
  one.join();
  other.join();
}
