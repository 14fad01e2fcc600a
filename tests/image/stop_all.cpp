// stop_all PID: stops each thread of a process, one after another, as `forksight why` stops threads that are proven to
// be stuck. It also stops threads whose waits have a time limit. `why` stops such a thread only if the thread begins
// its wait while `why` examines it.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "image/live.hpp"
#include "image/stop.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto image = forksight::image::open_live(std::atoi(argv[1]), {false, nullptr});
  if (!image) return 3;
  std::vector<std::int32_t> tids;
  for (const forksight::image::Thread& thread : image->threads) tids.push_back(thread.tid);
  forksight::image::stop_and_read_registers(image.value(), tids);
  for (const std::string& limit : image->limits) std::fprintf(stderr, "%s\n", limit.c_str());
  return image->limits.empty() ? 0 : 1;
}
