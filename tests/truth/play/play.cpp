// truth_play SCENARIO CONTROL: plays a scenario. Its forced steps happen in the order in which they are written. Then
// each thread takes its free steps, as far as it can. The player creates the file CONTROL, and writes there in which
// step each thread is. The judge reads this file. A program that starts again also gets the arguments SLOT PROCESS
// STEP: the slot of the thread, the slot of its process, and a step. After an `exec` step, STEP is that step, and the
// program continues with the next step. In a child of vfork() or posix_spawn(), STEP is -1, and the program begins with
// the first step of the child.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "control.hpp"
#include "objects.hpp"
#include "process_steps.hpp"
#include "steps.hpp"

namespace {

truth::Control* map_control(const char* path, bool make) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
  if (fd < 0 || (make && ftruncate(fd, sizeof(truth::Control)) != 0)) truth::fail("cannot make the control file");
  void* mapped = mmap(nullptr, sizeof(truth::Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) truth::fail("cannot map the control file");
  close(fd);
  return static_cast<truth::Control*>(mapped);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 6) truth::fail("the arguments must be SCENARIO CONTROL [SLOT PROCESS STEP]");
  const bool after_exec = argc == 6;
  auto* play = new truth::Play;  // never destroyed: other threads may use it until the process ends
  play->scenario = truth::read_scenario(argv[1]);
  play->scenario_path = argv[1];
  play->control_path = argv[2];
  play->control = map_control(argv[2], !after_exec);
  truth::g_play = play;
  if (play->scenario.threads.size() > truth::kMaxThreads) truth::fail("too many threads");
  truth::make_objects(play->scenario, *play->control, after_exec);
  truth::load_openmp(play->scenario);
  const int slot = after_exec ? std::atoi(argv[3]) : 0;
  const int step = after_exec ? std::atoi(argv[5]) : -1;
  truth::enter(slot, after_exec ? std::atoi(argv[4]) : 0);
  truth::t_here.next = step + 1;
  truth::t_here.is_first_of_process = true;
  if (step >= 0 && step < play->scenario.forced) truth::publish_turn(*play->control, static_cast<uint32_t>(step) + 1);
  truth::play_thread();
}
