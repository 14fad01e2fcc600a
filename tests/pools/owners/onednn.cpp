// The parent multiplies matrices with oneDNN, which uses the threads of libgomp. The child does the same, but does not
// have these threads. Repaired: only the child computes.
#include <sys/wait.h>
#include <unistd.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace {

void multiply() {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const dnnl::memory::desc square({512, 512}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  const dnnl::memory left(square, engine);
  const dnnl::memory right(square, engine);
  const dnnl::memory product(square, engine);
  const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(square, square, square), engine);
  dnnl::matmul(plan).execute(stream, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, product}});
  stream.wait();
}

}  // namespace

int main() {
#ifndef REPAIRED
  multiply();
#endif
  const pid_t child = fork();
  if (child == 0) {
    multiply();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
