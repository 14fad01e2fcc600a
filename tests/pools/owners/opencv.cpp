// The parent computes with cv::parallel_for_(), and then a child does the same. Debian's OpenCV uses TBB. In the child,
// TBB computes with the only thread that exists, so nothing hangs. Repaired: OpenCV uses only the calling thread.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <opencv2/core.hpp>

namespace {

constexpr int kNumbers = 1000;

int count() {
  std::atomic<int> seen{0};
  cv::parallel_for_(
      cv::Range(0, kNumbers), [&](const cv::Range& part) { seen += part.size(); }, 16);
  return seen;
}

}  // namespace

int main() {
#ifdef REPAIRED
  cv::setNumThreads(0);
#else
  cv::setNumThreads(2);
#endif
  if (count() != kNumbers) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(count() == kNumbers ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
