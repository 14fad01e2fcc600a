#include "transport.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace forksight::bench {
namespace {

std::vector<Kind>& registered() {
  static std::vector<Kind> all;
  return all;
}

}  // namespace

Registered::Registered(Kind kind) { registered().push_back(std::move(kind)); }
std::span<const Kind> kinds() { return registered(); }

void fail(std::string_view what) {
  std::fprintf(stderr, "bench_queue: %.*s: %s\n", static_cast<int>(what.size()), what.data(), std::strerror(errno));
  std::_Exit(2);
}

long must(long got, std::string_view what) {
  if (got < 0) fail(what);
  return got;
}

void* shared_memory(std::size_t bytes) {
  void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) fail("mmap");
  return made;
}

}  // namespace forksight::bench
