// The parent multiplies matrices with MKL, which uses the threads of libgomp here. The child does the same, but does
// not have these threads. MKL also loads LLVM's OpenMP runtime, which would have made new threads in the child.
// Repaired: only the child computes.
#include <mkl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace {

constexpr int kSide = 600;

bool multiply() {
  const std::vector<double> ones(kSide * kSide, 1);
  std::vector<double> product(kSide * kSide);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSide, kSide, kSide, 1, ones.data(), kSide, ones.data(), kSide,
              0, product.data(), kSide);
  return product[0] == kSide;
}

}  // namespace

int main() {
  mkl_set_threading_layer(MKL_THREADING_GNU);
  mkl_set_dynamic(0);  // otherwise MKL may compute with one thread on a small machine
#ifndef REPAIRED
  if (!multiply()) return 1;
#endif
  const pid_t child = fork();
  if (child == 0) _exit(multiply() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
