#include "render/samples.hpp"

#include <cerrno>

#include "support/cuda_scene.hpp"
#include "support/handler_scene.hpp"
#include "support/scenes.hpp"

namespace forksight::test {

namespace {

Sample lost_openmp_pool() {
  PoolTrace scene({.workers = 1});
  scene.touch(2);
  Sample sample{"lost-openmp-pool", read_model(scene.trace)};
  model::Model& model = sample.model;
  model.touches[0].stack = make_stack(
      {"gomp_team_barrier_wait_end libgomp.so.1", "work app.c:31", "main app.c:50", "__libc_start_main libc.so.6"});
  model.pools[0].made_at = make_stack({"GOMP_parallel libgomp.so.1", "work app.c:31", "main app.c:44"});
  model.forks[0].stack = make_stack({"main app.c:47"});
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {futex_wait(kChild)};
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  model.processes[0].waits_via = "wait4";
  model.command = {"./app", "--fast"};
  model.limits = {"/usr/lib/libgomp.so.1: is stripped: some of its functions have no names"};
  return sample;
}

Sample orphaned_mutex() {
  LockTrace scene({});
  scene.touch(trace::TouchKind::kLock);
  Sample sample{"orphaned-mutex", read_model(scene.trace)};
  model::Model& model = sample.model;
  model.touches[0].stack =
      make_stack({"__lll_lock_wait libc.so.6", "pthread_mutex_lock libc.so.6", "get src/cache.cpp:31",
                  "handle src/server.cpp:77", "serve src/server.cpp:90", "loop src/server.cpp:101",
                  "start src/server.cpp:120", "run src/main.cpp:40", "main src/main.cpp:52"});
  model.touches[0].stack.frames[3].inlined = true;
  model.forks[0].held[0].acquired_at = make_stack({"refill src/cache.cpp:12", "worker_main src/worker.cpp:9"});
  model.forks[0].held[0].acquired_at.frames[0].approximate = true;
  model.forks[0].held[0].acquired_at.cut = true;
  model.forks[0].stack = make_stack({"fork libc.so.6", "start src/server.cpp:118"});
  model.locks[0].name = "cache_mu";
  model.locks[0].module = "/opt/app/app";
  model.threads[1].start_routine = "worker_main";
  return sample;
}

Sample many_ranks() {
  Sample sample{"many-ranks", {}};
  for (int rank = 0; rank < 12; ++rank) {
    if (rank == 5) continue;
    LockTrace scene({.kind = trace::LockKind::kSemaphore, .memory = semaphore_memory(0)}, 3000 + rank);
    scene.trace.host("node" + std::to_string(rank / 4)).rank(rank, 12).creator(1000, 1, 77);
    scene.touch(trace::TouchKind::kLock);
    read_into(sample.model, scene.trace);
  }
  return sample;
}

Sample cured() {
  PoolTrace scene({.workers = 3});
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, false);
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, true);
  return {"cured", read_model(scene.trace)};
}

Sample refused_unlock() {
  LockTrace scene({.memory = mutex_memory(1, kParent, 1), .by_forking_thread = true});
  scene.end(scene.touch(trace::TouchKind::kUnlockRefused), EPERM);
  return {"self-held-lock", read_model(scene.trace)};
}

Sample lost_wakeup() {
  LockTrace scene({});
  Sample sample{"lost-wakeup", read_model(scene.trace)};
  sample.model.processes[1].liveness = model::Liveness::kDeadButForSignal;
  sample.model.processes[1].stuck_for_ms = 61'000;
  sample.model.processes[1].waits = {futex_wait(kChild), futex_wait(kChild + 1)};
  return sample;
}

Sample cuda_used_after_fork() {
  CudaTrace scene({});
  scene.answer(scene.call("cuMemAlloc_v2"), 3);
  scene.answer(scene.call("cuMemcpyHtoD_v2"), 3);
  Sample sample{"cuda-used-after-fork", read_model(scene.trace)};
  sample.model.touches[0].stack = make_stack({"allocate app.c:31", "main app.c:40"});
  sample.model.forks[0].cuda->init_stack =
      make_stack({"cudaGetDeviceCount libcudart.so.12", "count_gpus libvision.so.2", "main app.c:12"});
  sample.model.forks[0].stack = make_stack({"main app.c:38"});
  sample.model.processes[1].exit_status = 1 << 8;
  return sample;
}

Sample stuck_handler() {
  Sample sample{"atfork-handler-stuck", read_model(whole_handler_trace())};
  model::Model& model = sample.model;
  model.processes[0].liveness = model::Liveness::kDead;
  model.processes[0].stuck_for_ms = 2'000;
  model.processes[0].waits = {futex_wait(kParent), futex_wait(kHolder)};
  model.handlers[0].functions[0] = "end_pool";
  model.handler_runs[0].fork_stack = make_stack({"main app.c:20"});
  model.handler_runs[0].waits[0].stack = make_stack({"pthread_join libc.so.6", "end_pool libpool.so"});
  model.threads[1].created_at = make_stack({"pthread_create libc.so.6", "start_pool libpool.so", "main app.c:12"});
  model.threads[1].start_routine = "pool_main";
  return sample;
}

// A sample whose names are arbitrary bytes. Names in a trace may be arbitrary bytes, too.
Sample hostile() {
  Sample sample = orphaned_mutex();
  sample.name = "hostile";
  model::Model& model = sample.model;
  const std::string bytes = "\x1b[31mred\x07\xff\xc3(\xed\xa0\x80\n\t\"\\";
  model.locks[0].name = bytes;
  model.threads[1].name = bytes;
  model.threads[1].start_routine = bytes;
  model.processes[1].exe = "/tmp/" + bytes;
  model.processes[1].cmdline = {bytes, std::string("a\0b", 3)};
  model.processes[1].host = bytes;
  model.touches[0].stack.frames[2].function = bytes;
  model.touches[0].stack.frames[2].file = bytes;
  model.limits = {bytes};
  // `run` saw the process hang. Later the process ended.
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 2000;
  model.command = {bytes};
  return sample;
}

model::Ender process_ender(std::int32_t pid, const char* via, const char* command) {
  model::Ender ender;
  ender.pid = pid;
  ender.via = via;
  ender.command = command;
  ender.state = 'S';
  return ender;
}

model::Ender worded_ender(model::EnderKind kind, const char* what) {
  model::Ender ender;
  ender.kind = kind;
  ender.what = what;
  return ender;
}

model::Wait idle_wait(std::int32_t tid, const char* call, const char* target, std::vector<model::Ender> enders) {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.state = 'S';
  wait.kind = model::WaitKind::kOther;
  wait.call = call;
  wait.target = target;
  wait.for_ms = 3200;
  wait.are_enders_known = true;
  wait.enders = std::move(enders);
  return wait;
}

// A sample with all kinds of enders, threads with equal waits, and a stopped process.
Sample waits() {
  Sample sample{"waits", {}};
  model::Process server;
  server.pid = 4000;
  server.exe = "/src/app/server";
  server.liveness = model::Liveness::kAwake;
  model::Ender writer = process_ender(4100, "pipe", "/bin/sh -c 'make \x1b[31mred'");
  writer.fd = 5;
  writer.may_have_written = false;
  model::Ender stopped = process_ender(4200, "pipe", "tail -f log");
  stopped.fd = 1;
  stopped.state = 'T';
  model::Ender own = process_ender(4000, "pipe", "server");
  own.fd = 6;
  model::Ender owner = process_ender(4000, "mutex", "server");
  owner.tid = 4003;
  model::Ender timer = worded_ender(model::EnderKind::kTimer, "its time limit");
  timer.in_ms = 61'000;
  server.waits = {
      idle_wait(4000, "in read", "pipe:[17]",
                {writer, stopped, own, worded_ender(model::EnderKind::kSignal, "a handler of SIGTERM"), timer}),
      idle_wait(4001, "in a futex without a timeout", "the mutex queue_mutex, which thread 4003 holds", {owner}),
      idle_wait(4002, "in a futex without a timeout", "the mutex queue_mutex, which thread 4003 holds", {owner}),
      idle_wait(4003, "in semop", "System V semaphore set 3", {})};
  server.waits[0].kind = model::WaitKind::kPipeRead;
  server.waits[0].stack = make_stack({"read libc.so.6", "serve app.c:31", "main app.c:50"});
  for (std::int32_t pid = 4300; pid < 4308; ++pid) {
    model::Ender ender = process_ender(pid, "socket", "worker");
    ender.is_frozen = pid == 4300;
    server.waits[3].enders.push_back(std::move(ender));
  }
  model::Process halted;
  halted.pid = 4500;
  halted.liveness = model::Liveness::kAwake;
  halted.waits = {idle_wait(4500, "stopped", "", {worded_ender(model::EnderKind::kContinue, "kill -CONT 4500")}),
                  idle_wait(4501, "in open", "the FIFO /run/jobs, for somebody who writes",
                            {worded_ender(model::EnderKind::kAnybody, "whoever opens it for writing")}),
                  idle_wait(4502, "in pause", "", {})};
  sample.model.processes = {server, halted};
  return sample;
}

Sample nothing() { return {"nothing", read_model(LockTrace({}).trace)}; }

}  // namespace

std::vector<Sample> all_samples() {
  return {lost_openmp_pool(),     orphaned_mutex(), many_ranks(), cured(),   refused_unlock(), lost_wakeup(),
          cuda_used_after_fork(), stuck_handler(),  hostile(),    nothing(), waits(),          {"empty", {}}};
}

}  // namespace forksight::test
