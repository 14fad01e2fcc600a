#include "render/programs.hpp"

#include <fmt/core.h>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"
#include "support/scenes.hpp"

namespace forksight::test {
namespace {

constexpr std::string_view kLibraries = "/usr/lib/x86_64-linux-gnu/";

// Makes a frame from a text. "work app.c:31" is a line of the program, "main /usr/lib/python3.11/x.py:3" is a line of
// Python, "<module> /usr/bin/gunicorn:33" is a line of a Python script, and "read libc.so.6" or "read libc.so.6+0x2f40"
// is a frame without a line.
model::Frame frame_of(std::string_view text) {
  model::Frame frame;
  const std::size_t space = text.rfind(' ');
  const std::string_view place = text.substr(space + 1);
  frame.function = text.substr(0, space);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    const std::size_t plus = place.rfind("+0x");
    const std::string_view file = place.substr(0, plus);
    const bool is_program = file == "python3.11" || file == "uwsgi-core";
    frame.module = fmt::format("{}{}", is_program ? "/usr/bin/" : kLibraries, file);
    frame.offset =
        plus == std::string_view::npos ? 0x2f40 : std::stoull(std::string(place.substr(plus + 1)), nullptr, 16);
    return frame;
  }
  const std::string_view file = place.substr(0, colon);
  frame.file = file.starts_with('/') ? std::string(file) : fmt::format("/src/app/{}", file);
  frame.line = std::stoi(std::string(place.substr(colon + 1)));
  frame.python = file.ends_with(".py") || file.starts_with("/usr/bin/");
  if (!frame.python) frame.module = "/src/app/app";
  return frame;
}

model::Stack stack_of(std::initializer_list<std::string_view> frames) {
  model::Stack stack;
  for (const std::string_view text : frames) stack.frames.push_back(frame_of(text));
  return stack;
}

void be_dead(model::Process& process, std::vector<model::Wait> waits) {
  process.liveness = model::Liveness::kDead;
  process.stuck_for_ms = 4200;
  process.waits = std::move(waits);
}

void name_threads(model::Model& model, std::string_view name) {
  for (model::Thread& thread : model.threads) thread.name = name;
  for (model::Process& process : model.processes) {
    for (model::Wait& wait : process.waits) wait.name = name;
  }
}

void be_python(model::Model& model, const std::vector<std::string>& command) {
  for (model::Process& process : model.processes) {
    process.exe = "/usr/bin/python3.11";
    process.cmdline = command;
  }
  name_threads(model, "python3");
}

void wait_for_child(model::Model& model, const char* via) {
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  model.processes[0].waits_via = via;
}

// Returns a model with a child that waits for a lock of the kind that `scene` names.
model::Model locked(const LockScene& scene) {
  LockTrace trace(scene);
  trace.touch(trace::TouchKind::kLock);
  model::Model model = read_model(trace.trace);
  be_dead(model.processes[1], {futex_wait(kChild)});
  return model;
}

model::Wait wait_of(std::int32_t tid, model::WaitKind kind, std::vector<model::Waker> wakers) {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.state = 'S';
  wait.kind = kind;
  wait.wakers_known = true;
  wait.wakers = std::move(wakers);
  wait.is_stuck = true;
  return wait;
}

model::Process process_of(std::int32_t pid, std::vector<model::Wait> waits) {
  model::Process process;
  process.pid = pid;
  process.exe = "/src/app/app";
  be_dead(process, std::move(waits));
  return process;
}

void append(model::Stack& stack, const model::Stack& more) {
  stack.frames.insert(stack.frames.end(), more.frames.begin(), more.frames.end());
}

// `ways_out`: the handlers that the program has for signals, besides Python's own handler of Ctrl-C.
void be_dead_but_for_signal(model::Process& process, std::vector<std::string> ways_out) {
  process.liveness = model::Liveness::kDeadButForSignal;
  process.ways_out = std::move(ways_out);
}

// Gives the Python stack that the holder of the lock had at the fork.
void hold_lock_at(model::Model& model, const model::Stack& stack) {
  model.forks[0].python = model.python.size();
  model.python.push_back({{model.threads[model.forks[0].held[0].holder].pointer, stack}});
}

const LockScene kSemaphore{.kind = trace::LockKind::kSemaphore, .memory = semaphore_memory(0)};

Program data_loader() {
  PoolTrace scene({.workers = 3});
  scene.touch(4);
  Program program{"data-loader",
                  "A worker of a PyTorch `DataLoader` enters a parallel region of libgomp",
                  read_model(scene.trace),
                  {"dl2.py:11", "dl2.py:20"},
                  "multiprocessing_context"};
  model::Model& model = program.model;
  be_dead(model.processes[1], {futex_wait(kChild)});
  be_python(model, {"python3", "dl2.py"});
  wait_for_child(model, "pipe");
  const std::string_view torch = "/usr/lib/python3/dist-packages/torch/utils/data/";
  model.touches[0].stack = stack_of(
      {"?? libgomp.so.1", "GOMP_parallel libgomp.so.1", "at::TensorIteratorBase::for_each libtorch_cpu.so.1.13",
       "at::native::(anonymous namespace)::add_kernel libtorch_cpu.so.1.13",
       "at::native::add_stub libtorch_cpu.so.1.13", "at::_ops::add_Tensor::call libtorch_cpu.so.1.13",
       "?? libtorch_python.so.1.13", "__getitem__ dl2.py:11", fmt::format("fetch {}_utils/fetch.py:49", torch),
       fmt::format("_worker_loop {}_utils/worker.py:308", torch),
       "run /usr/lib/python3.11/multiprocessing/process.py:108",
       "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:71",
       fmt::format("__iter__ {}dataloader.py:441", torch), "main dl2.py:20", "<module> dl2.py:24",
       "_PyEval_EvalFrameDefault python3.11", "__libc_start_main_impl libc.so.6"});
  model.pools[0].made_at = stack_of({"GOMP_parallel libgomp.so.1", "at::internal::invoke_parallel libtorch_cpu.so.1.13",
                                     "at::native::sum libtorch_cpu.so.1.13", "?? libtorch_python.so.1.13",
                                     "main dl2.py:17", "<module> dl2.py:24", "Py_RunMain python3.11"});
  model.forks[0].stack = stack_of(
      {"fork libc.so.6", "os_fork python3.11", "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:66",
       "start /usr/lib/python3.11/multiprocessing/process.py:121", fmt::format("__init__ {}dataloader.py:1039", torch),
       fmt::format("_get_iterator {}dataloader.py:387", torch), fmt::format("__iter__ {}dataloader.py:441", torch),
       "main dl2.py:20", "<module> dl2.py:24", "Py_RunMain python3.11"});
  model.limits = {
      "/usr/bin/python3.11: is stripped: some of its functions have no names",
      "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13: is stripped: some of its functions have no names",
      "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13: is stripped: some of its functions have no names"};
  return program;
}

Program openblas() {
  Program program{"openblas",
                  "A child multiplies matrices while OpenBLAS's lock is held",
                  locked({}),
                  {"solve.c:40", "solve.c:71"}};
  model::Model& model = program.model;
  model.locks[0].module = std::string(kLibraries) + "libopenblas.so.0";
  model.touches[0].stack =
      stack_of({"pthread_mutex_lock libc.so.6", "blas_memory_alloc libopenblas.so.0", "cblas_dgemm libopenblas.so.0",
                "multiply solve.c:40", "main solve.c:77", "__libc_start_main_impl libc.so.6"});
  model.forks[0].held[0].acquired_at =
      stack_of({"pthread_mutex_lock libc.so.6", "exec_blas libopenblas.so.0", "cblas_dgemm libopenblas.so.0",
                "background solve.c:52", "start_thread libc.so.6"});
  model.forks[0].stack = stack_of({"fork libc.so.6", "main solve.c:71"});
  return program;
}

Program c_mutex() {
  Program program{"c-mutex",
                  "A child locks a mutex that another thread of its parent held",
                  locked({}),
                  {"cache.c:31", "server.c:118"}};
  model::Model& model = program.model;
  model.locks[0].name = "cache_mutex";
  model.locks[0].module = "/src/app/app";
  model.threads[1].start_routine = "worker_main";
  model.touches[0].stack = stack_of(
      {"futex_wait libc.so.6", "__lll_lock_wait libc.so.6", "pthread_mutex_lock libc.so.6", "cache_get cache.c:31",
       "handle_request server.c:77", "serve server.c:90", "main server.c:120", "__libc_start_main_impl libc.so.6"});
  model.touches[0].stack.frames[4].inlined = true;
  model.forks[0].held[0].acquired_at =
      stack_of({"cache_refill cache.c:12", "worker_main worker.c:9", "start_thread libc.so.6"});
  model.forks[0].held[0].acquired_at.frames[0].approximate = true;
  model.forks[0].stack = stack_of({"fork libc.so.6", "main server.c:118"});
  return program;
}

Program cpp_static() {
  Program program{"cpp-static",
                  "A child needs a C++ static that another thread was initialising",
                  locked({.kind = trace::LockKind::kGuard, .memory = guard_memory(0x10100)}),
                  {"prices.cpp:21", "shop.cpp:58"}};
  model::Model& model = program.model;
  model.locks[0].name = "guard variable for shop::prices()::table";
  model.locks[0].module = "/src/app/app";
  model.touches[0].stack =
      stack_of({"syscall libc.so.6", "__cxa_guard_acquire libstdc++.so.6", "shop::prices() prices.cpp:21",
                "shop::total(std::vector<shop::Item, std::allocator<shop::Item> > const&) shop.cpp:34",
                "main shop.cpp:61", "__libc_start_main_impl libc.so.6"});
  model.forks[0].held[0].acquired_at =
      stack_of({"__cxa_guard_acquire libstdc++.so.6", "shop::prices() prices.cpp:21", "shop::warm_up() shop.cpp:12",
                "std::__invoke_impl<void, void (*)()> /usr/include/c++/12/bits/invoke.h:61", "start_thread libc.so.6"});
  model.forks[0].stack = stack_of({"fork libc.so.6", "main shop.cpp:58"});
  return program;
}

Program pipe_held_open() {
  model::Wait reader = wait_of(200, model::WaitKind::kPipeRead, {{100, 0, 4, "pipe"}});
  reader.path = "pipe:[4242]";
  reader.fd = 3;
  reader.stack = stack_of({"read libc.so.6", "read_all filter.c:18", "main filter.c:33"});
  model::Wait waiter = wait_of(100, model::WaitKind::kWaitChild, {{200, 0, -1, "wait4"}});
  waiter.stack = stack_of({"wait4 libc.so.6", "finish filter.c:41", "main filter.c:49"});
  model::Model model;
  model.processes = {process_of(100, {waiter}), process_of(200, {reader})};
  model.processes[1].ppid = 100;
  return {"pipe-held-open",
          "A child reads a pipe to its end, and its parent has the writing end open",
          std::move(model),
          {"filter.c:18"}};
}

Program popen_in_child() {
  constexpr std::uint64_t kPopen = trace::bit_of(trace::LibcLock::kPopen);
  LibcTrace scene({"popen", kPopen});
  scene.touch({"pclose", kPopen});
  Program program{"popen",
                  "A child closes a stream of `popen` while another thread's `popen` was going on",
                  read_model(scene.trace),
                  {"report.c:22", "report.c:64"}};
  model::Model& model = program.model;
  be_dead(model.processes[1], {futex_wait(kChild)});
  model.touches[0].stack =
      stack_of({"pclose libc.so.6", "send_mail report.c:22", "main report.c:70", "__libc_start_main_impl libc.so.6"});
  model.forks[0].calls[0].called_at = stack_of({"popen libc.so.6", "compress report.c:35", "start_thread libc.so.6"});
  model.forks[0].stack = stack_of({"fork libc.so.6", "main report.c:64"});
  return program;
}

Program condition_variable() {
  LockTrace scene({.kind = trace::LockKind::kCondition, .memory = condition_memory(3)});
  scene.touch(trace::TouchKind::kCondition, 0, trace::TouchAction::kNone, trace::SyncOperation::kDestroy);
  Program program{"condition-variable",
                  "A child destroys a condition variable that lost threads waited for",
                  read_model(scene.trace),
                  {"queue.c:80", "main.c:25"}};
  model::Model& model = program.model;
  be_dead(model.processes[1], {futex_wait(kChild)});
  model.locks[0].name = "jobs.not_empty";
  model.locks[0].module = "/src/app/app";
  model.touches[0].stack = stack_of({"pthread_cond_destroy libc.so.6", "queue_free queue.c:80", "main main.c:31",
                                     "__libc_start_main_impl libc.so.6"});
  model.forks[0].held[0].acquired_at = stack_of(
      {"pthread_cond_wait libc.so.6", "queue_take queue.c:44", "worker_main main.c:11", "start_thread libc.so.6"});
  model.forks[0].stack = stack_of({"fork libc.so.6", "main main.c:25"});
  return program;
}

// What happened to a child that waits for a lock of Python. The frames are those that forksight shows for programs on
// Debian 12.
struct PythonHang {
  std::vector<std::string> command;                 // {"python3", "jobs.py"}
  std::initializer_list<std::string_view> child;    // what the child has called since the fork, innermost first
  std::initializer_list<std::string_view> forking;  // what has called fork(), up to the functions of `outer`
  std::initializer_list<std::string_view> outer;    // what both the child and the fork have
  std::initializer_list<std::string_view> holder;   // where the holder of the lock was at the fork
  std::vector<std::string> ways_out = {};           // handlers that the framework has for signals
};

Program python_hang(Program program, const PythonHang& hang) {
  program.model = locked(kSemaphore);
  model::Model& model = program.model;
  be_python(model, hang.command);
  be_dead_but_for_signal(model.processes[1], hang.ways_out);
  model.touches[0].stack = stack_of({"__futex_abstimed_wait_common libc.so.6", "__new_sem_wait_slow64 libc.so.6",
                                     "PyThread_acquire_lock_timed python3.11", "_PyObject_MakeTpCall python3.11"});
  append(model.touches[0].stack, stack_of(hang.child));
  append(model.touches[0].stack, stack_of(hang.outer));
  append(model.touches[0].stack, stack_of({"Py_RunMain python3.11", "__libc_start_main_impl libc.so.6"}));
  model.forks[0].stack = stack_of({"os_fork python3.11", "PyObject_Vectorcall python3.11"});
  append(model.forks[0].stack, stack_of(hang.forking));
  append(model.forks[0].stack, stack_of(hang.outer));
  append(model.forks[0].stack, stack_of({"Py_RunMain python3.11", "__libc_start_main_impl libc.so.6"}));
  hold_lock_at(model, stack_of(hang.holder));
  return program;
}

Program pool_worker() {
  return python_hang(
      {"pool-worker",
       "A worker of `multiprocessing.Pool` needs the lock of a cache, which another thread held",
       {},
       {"thumbnails.py:9", "jobs.py:20"},
       "multiprocessing.get_context"},
      {.command = {"python3", "jobs.py"},
       .child = {"get thumbnails.py:9", "convert jobs.py:9", "mapstar /usr/lib/python3.11/multiprocessing/pool.py:48",
                 "worker /usr/lib/python3.11/multiprocessing/pool.py:125",
                 "run /usr/lib/python3.11/multiprocessing/process.py:108",
                 "_bootstrap /usr/lib/python3.11/multiprocessing/process.py:314",
                 "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:71"},
       .forking = {"_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:66"},
       .outer = {"__init__ /usr/lib/python3.11/multiprocessing/popen_fork.py:19",
                 "_Popen /usr/lib/python3.11/multiprocessing/context.py:281",
                 "start /usr/lib/python3.11/multiprocessing/process.py:121",
                 "_repopulate_pool_static /usr/lib/python3.11/multiprocessing/pool.py:329",
                 "_repopulate_pool /usr/lib/python3.11/multiprocessing/pool.py:306",
                 "__init__ /usr/lib/python3.11/multiprocessing/pool.py:215",
                 "Pool /usr/lib/python3.11/multiprocessing/context.py:119", "main jobs.py:20", "<module> jobs.py:25"},
       .holder = {"measure thumbnails.py:19", "fill thumbnails.py:15", "refresh jobs.py:14",
                  "run /usr/lib/python3.11/threading.py:975"}});
}

Program process_executor() {
  return python_hang({"process-executor",
                      "A call of `ProcessPoolExecutor` needs the lock of a cache, which another thread held",
                      {},
                      {"thumbnails.py:9", "pages.py:21"},
                      "mp_context"},
                     {.command = {"python3", "pages.py"},
                      .child = {"get thumbnails.py:9", "render pages.py:9",
                                "_process_worker /usr/lib/python3.11/concurrent/futures/process.py:256",
                                "run /usr/lib/python3.11/multiprocessing/process.py:108",
                                "_bootstrap /usr/lib/python3.11/multiprocessing/process.py:314",
                                "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:71"},
                      .forking = {"_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:66"},
                      .outer = {"__init__ /usr/lib/python3.11/multiprocessing/popen_fork.py:19",
                                "_Popen /usr/lib/python3.11/multiprocessing/context.py:281",
                                "start /usr/lib/python3.11/multiprocessing/process.py:121",
                                "_spawn_process /usr/lib/python3.11/concurrent/futures/process.py:759",
                                "_launch_processes /usr/lib/python3.11/concurrent/futures/process.py:749",
                                "_start_executor_manager_thread /usr/lib/python3.11/concurrent/futures/process.py:722",
                                "submit /usr/lib/python3.11/concurrent/futures/process.py:783", "main pages.py:21",
                                "<module> pages.py:26"},
                      .holder = {"measure thumbnails.py:19", "fill thumbnails.py:15", "refresh pages.py:14",
                                 "run /usr/lib/python3.11/threading.py:975"}});
}

Program gunicorn() {
  return python_hang(
      {"gunicorn",
       "A request to gunicorn needs the lock of a cache, which another thread held",
       {},
       {"thumbnails.py:9", "views.py:5"},
       "post_fork"},
      {.command = {"python3", "/usr/bin/gunicorn", "--preload", "wsgi:application"},
       .child = {"get thumbnails.py:9", "index views.py:5", "application views.py:9",
                 "handle_request /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:179",
                 "handle /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:136",
                 "accept /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:31",
                 "run_for_one /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:69",
                 "run /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:125",
                 "init_process /usr/lib/python3/dist-packages/gunicorn/workers/base.py:142",
                 "spawn_worker /usr/lib/python3/dist-packages/gunicorn/arbiter.py:589"},
       .forking = {"spawn_worker /usr/lib/python3/dist-packages/gunicorn/arbiter.py:573"},
       .outer = {"spawn_workers /usr/lib/python3/dist-packages/gunicorn/arbiter.py:622",
                 "manage_workers /usr/lib/python3/dist-packages/gunicorn/arbiter.py:551",
                 "run /usr/lib/python3/dist-packages/gunicorn/arbiter.py:202",
                 "run /usr/lib/python3/dist-packages/gunicorn/app/base.py:72",
                 "run /usr/lib/python3/dist-packages/gunicorn/app/base.py:231",
                 "run /usr/lib/python3/dist-packages/gunicorn/app/wsgiapp.py:67", "<module> /usr/bin/gunicorn:33"},
       .holder = {"measure thumbnails.py:19", "fill thumbnails.py:15", "refresh wsgi.py:12",
                  "run /usr/lib/python3.11/threading.py:975"},
       .ways_out = {"a handler of SIGINT, SIGQUIT, SIGUSR1, SIGTERM and 3 more"}});
}

Program celery() {
  return python_hang({"celery",
                      "A task of celery needs the lock of a cache, which another thread held",
                      {},
                      {"thumbnails.py:9", "tasks.py:20"},
                      "worker_process_init"},
                     {.command = {"python3", "-m", "celery", "-A", "tasks", "worker"},
                      .child = {"get thumbnails.py:9", "resize tasks.py:20",
                                "__protected_call__ /usr/lib/python3/dist-packages/celery/app/trace.py:734",
                                "trace_task /usr/lib/python3/dist-packages/celery/app/trace.py:451",
                                "fast_trace_task /usr/lib/python3/dist-packages/celery/app/trace.py:649",
                                "workloop /usr/lib/python3/dist-packages/billiard/pool.py:361",
                                "__call__ /usr/lib/python3/dist-packages/billiard/pool.py:291",
                                "run /usr/lib/python3/dist-packages/billiard/process.py:110",
                                "_bootstrap /usr/lib/python3/dist-packages/billiard/process.py:323",
                                "_launch /usr/lib/python3/dist-packages/billiard/popen_fork.py:77"},
                      .forking = {"_launch /usr/lib/python3/dist-packages/billiard/popen_fork.py:70"},
                      .outer = {"__init__ /usr/lib/python3/dist-packages/billiard/popen_fork.py:22",
                                "_Popen /usr/lib/python3/dist-packages/billiard/context.py:331",
                                "start /usr/lib/python3/dist-packages/billiard/process.py:120",
                                "_create_worker_process /usr/lib/python3/dist-packages/billiard/pool.py:1157",
                                "__init__ /usr/lib/python3/dist-packages/billiard/pool.py:1045",
                                "on_start /usr/lib/python3/dist-packages/celery/concurrency/prefork.py:109",
                                "start /usr/lib/python3/dist-packages/celery/concurrency/base.py:129",
                                "start /usr/lib/python3/dist-packages/celery/bootsteps.py:365",
                                "start /usr/lib/python3/dist-packages/celery/bootsteps.py:116",
                                "start /usr/lib/python3/dist-packages/celery/worker/worker.py:203",
                                "worker /usr/lib/python3/dist-packages/celery/bin/worker.py:351",
                                "main /usr/lib/python3/dist-packages/celery/__main__.py:15",
                                "<module> /usr/lib/python3/dist-packages/celery/__main__.py:19"},
                      .holder = {"measure thumbnails.py:19", "fill thumbnails.py:15", "refresh tasks.py:15",
                                 "run /usr/lib/python3.11/threading.py:975"},
                      .ways_out = {"a handler of SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and 5 more"}});
}

// The interpreter is a library of uWSGI. forksight does not ask such an interpreter for the stacks of its threads, so
// the frames of the holder are those of the interpreter.
Program uwsgi() {
  Program program{"uwsgi",
                  "A request to uWSGI needs the lock of a cache, which another thread held",
                  locked(kSemaphore),
                  {"thumbnails.py:9", "views.py:5"},
                  "lazy-apps"};
  model::Model& model = program.model;
  for (model::Process& process : model.processes) {
    process.exe = "/usr/bin/uwsgi-core";
    process.cmdline = {"uwsgi-core", "--plugin", "python311", "--master", "--wsgi-file", "wsgi.py"};
  }
  name_threads(model, "uwsgi-core");
  model.threads[1].start_library = std::string(kLibraries) + "libpython3.11.so.1.0";
  be_dead_but_for_signal(model.processes[1], {"a handler of SIGHUP, SIGINT, SIGUSR1, SIGUSR2 and 4 more"});
  model.touches[0].stack = stack_of(
      {"__futex_abstimed_wait_common libc.so.6", "__new_sem_wait_slow64 libc.so.6",
       "PyThread_acquire_lock_timed libpython3.11.so.1.0", "_PyObject_MakeTpCall libpython3.11.so.1.0",
       "get thumbnails.py:9", "index views.py:5", "application views.py:9", "PyObject_CallObject libpython3.11.so.1.0",
       "python_call python311_plugin.so", "uwsgi_request_wsgi python311_plugin.so", "wsgi_req_recv uwsgi-core+0x2bf6f",
       "simple_loop_run uwsgi-core+0x77f33", "simple_loop uwsgi-core+0x7800a", "uwsgi_ignition uwsgi-core+0x7cc38",
       "uwsgi_worker_run uwsgi-core+0x800ca", "uwsgi_run uwsgi-core+0x80639", "main uwsgi-core+0x2b61d",
       "__libc_start_main_impl libc.so.6"});
  model.forks[0].stack = stack_of({"uwsgi_fork uwsgi-core+0x2d84b", "uwsgi_respawn_worker uwsgi-core+0x428df",
                                   "uwsgi_start uwsgi-core+0x7e51d", "uwsgi_setup uwsgi-core+0x7fd30",
                                   "main uwsgi-core+0x2b618", "__libc_start_main_impl libc.so.6"});
  model.forks[0].held[0].acquired_at =
      stack_of({"PyThread_acquire_lock_timed libpython3.11.so.1.0", "?? libpython3.11.so.1.0",
                "_PyObject_MakeTpCall libpython3.11.so.1.0", "_PyEval_EvalFrameDefault libpython3.11.so.1.0",
                "start_thread libc.so.6"});
  return program;
}

// asyncio has a handler of SIGINT while it runs a coroutine.
Program asyncio() {
  return python_hang(
      {"asyncio",
       "A coroutine of `asyncio` forks while another thread holds the lock of a cache",
       {},
       {"thumbnails.py:9", "jobs.py:20"},
       "create_subprocess_exec()"},
      {.command = {"python3", "jobs.py"},
       .child = {"get thumbnails.py:9", "convert jobs.py:10", "start jobs.py:20"},
       .forking = {"start jobs.py:19"},
       .outer = {"_run /usr/lib/python3.11/asyncio/events.py:80",
                 "_run_once /usr/lib/python3.11/asyncio/base_events.py:1922",
                 "run_forever /usr/lib/python3.11/asyncio/base_events.py:607",
                 "run_until_complete /usr/lib/python3.11/asyncio/base_events.py:640",
                 "run /usr/lib/python3.11/asyncio/runners.py:118", "run /usr/lib/python3.11/asyncio/runners.py:190",
                 "main jobs.py:28", "<module> jobs.py:32"},
       .holder = {"measure thumbnails.py:19", "fill thumbnails.py:15", "refresh jobs.py:15",
                  "run /usr/lib/python3.11/threading.py:975"},
       .ways_out = {"a handler of SIGINT"}});
}

Program python_lock() {
  return python_hang(
      {"python-lock",
       "A child puts into a `queue.Queue` whose lock another thread held",
       {},
       {"worker.py:12", "train.py:29"}},
      {.command = {"python3", "train.py"},
       .child = {"__enter__ /usr/lib/python3.11/threading.py:265", "put /usr/lib/python3.11/queue.py:133",
                 "work worker.py:12", "main train.py:31"},
       .forking = {"main train.py:29"},
       .outer = {"<module> train.py:36"},
       .holder = {"__enter__ /usr/lib/python3.11/threading.py:265", "put /usr/lib/python3.11/queue.py:133",
                  "load loader.py:11", "run /usr/lib/python3.11/threading.py:975"}});
}

Program subprocess() {
  model::Wait writer = wait_of(200, model::WaitKind::kPipeWrite, {{100, 0, 5, "pipe"}});
  writer.path = "pipe:[4242]";
  writer.fd = 1;
  writer.stack = stack_of({"write libc.so.6", "print_all convert.c:18", "main convert.c:33"});
  model::Wait waiter = wait_of(100, model::WaitKind::kWaitChild, {{200, 0, -1, "wait4"}});
  waiter.stack =
      stack_of({"wait4 libc.so.6", "os_waitpid python3.11", "_try_wait /usr/lib/python3.11/subprocess.py:1997",
                "wait /usr/lib/python3.11/subprocess.py:1264", "convert upload.py:27", "<module> upload.py:40"});
  model::Model model;
  model.processes = {process_of(100, {waiter}), process_of(200, {writer})};
  model.processes[0].exe = "/usr/bin/python3.11";
  model.processes[1].ppid = 100;
  return {"subprocess",
          "`Popen.wait()` waits for a child that writes into a full pipe",
          std::move(model),
          {"convert.c:18", "upload.py:27"},
          "communicate()"};
}

Program join_cycle() {
  model::Wait joiner = wait_of(100, model::WaitKind::kFutex, {{100, 101, -1, "join"}});
  joiner.use = model::FutexUse::kJoin;
  joiner.owner = 101;
  joiner.object = 0x1000;
  joiner.stack = stack_of({"__pthread_clockjoin_ex libc.so.6", "std::thread::join() libstdc++.so.6",
                           "Server::stop() server.cpp:88", "main server.cpp:120", "__libc_start_main_impl libc.so.6"});
  model::Wait locker = wait_of(101, model::WaitKind::kFutex, {{100, 100, -1, "mutex"}});
  locker.use = model::FutexUse::kMutex;
  locker.owner = 100;
  locker.object = 0x2000;
  locker.object_name = "state_mutex";
  locker.object_module = "/src/app/app";
  locker.stack =
      stack_of({"pthread_mutex_lock libc.so.6", "std::mutex::lock() /usr/include/c++/12/bits/std_mutex.h:100",
                "Server::publish() server.cpp:52", "Server::run() server.cpp:30", "start_thread libc.so.6"});
  model::Model model;
  model.processes = {process_of(100, {joiner, locker})};
  return {"join-cycle",
          "A thread joins another thread, which needs a lock that the first one holds",
          std::move(model),
          {"server.cpp:88", "server.cpp:52"}};
}

constexpr std::string_view kHead = R"(# What a report looks like

`tests/render/reports_page.cpp` makes this page from the models in `tests/render/programs.cpp`. A test checks that this
page is equal to the output of that program. Another test renders every report at 40, 80, 120 and 200 columns, with and
without colour. To write the page again, build the target `reports_page`.

## How to read it

The first line of a finding says how certain the finding is, and names the hazard. `forksight explain NAME` describes
the hazard in full. The second line is enough for most readers: which process hangs, at which line of the program, and
why. A stack shows the program's own frames: on the left the function, on the right the file and the line.

- Frames of libraries and runtimes are folded into one line, such as `(10 frames of libtorch_cpu.so, libgomp.so.1)`. The
  line says how many frames there are, and names the libraries, those with the most frames first. The outermost frames,
  in which libc or the interpreter starts the thread, are left out. `--full` shows every frame; `forksight why`, `core`,
  `report`, `run` and `ci` have this option. The JSON report has all frames with and without this option.
- If a stack has at most 24 frames of the program's own, all of these are shown. If it has more, as in a deep recursion,
  the innermost 16 and the outermost 8 are shown. A frame is the program's own if it is not in libc, a language's
  runtime, the standard library of Python, an installed Python package, a library of the distribution, or a
  [known owner of threads](pools.md).
- If a thread waits inside of a library, the sentences of a finding name two places: first the line of the program, and
  then the line of the library. For example: "dl2.py:20, dataloader.py:1039".
- A frame without a name, as in a stripped program, is shown as `app+0x1171`: the file, and the place in it that
  addr2line takes. Consecutive frames of this kind in one file share a row. The row shows the place of the innermost of
  these frames, and says how many frames it stands for.
- `(approximate)`: the frame was found by a search of the stack. `(inlined)`: the compiler has put the function into its
  caller.
- `[tested]`: the hazard suite tries this advice on a program with that hazard.
- What forksight could not see, such as a file without symbols, is listed once, at the end. If rules were left out because
  they would take too long, and there is no finding, then `why`, `core` and `report` exit with 3: there may be a hang.
- The line at the top says how many findings there are, and in how many processes. For `forksight why` these are the
  processes that were asked about, their descendants, and other processes on which their waits depend. A shell that only
  waits for its child is not counted. But the shell may be named under `Waiting`, and the JSON report has the shell.

## In a pipe

If the reader of the pipe ends early, as in `forksight why PID | head`, forksight ends by SIGPIPE without a message, as
other programs do. If SIGPIPE is ignored, writing to such a pipe fails. If a report cannot be written, for this or
another reason, forksight prints an error message, and exits with 3.

`run` has other statuses. If it cannot open the file that `--report` names, it exits with 2 and does not start the
command. If it cannot write a report into this file later, it exits with 125, and writes the text report to standard
error. An earlier report in the file of `--report` stays until the new one is complete. If the file of `--junit` cannot
be written, `ci` exits with 125 only if it would exit with 0 otherwise. If standard error cannot be written, the exit
status of `run` and `ci` does not change.

## On a terminal

Text is wrapped at the width of the terminal, between 40 and 200 columns. `COLUMNS` overrides that width. A word is never
cut, so that a path can be copied. If the report goes to a file or a pipe and `COLUMNS` is not set, text is wrapped at 100
columns, but the first two lines of a finding are not wrapped, so that a log has them whole.

On a terminal the report has colours, and the places of files that exist are links (OSC 8). The report has neither
colours nor links if `NO_COLOR` is set or `TERM` is `dumb`. It has no links on the console of Linux (`TERM=linux`). The
text is the same with and without colour. Names and other text of the examined program may contain bytes that could
control a terminal. The report shows each of these bytes as `\xNN`.
)";

constexpr std::size_t kUsual = 80;
constexpr std::string_view kShownAtOtherWidths = "c-mutex";

std::string console(const std::string& text) { return fmt::format("\n```console\n{}```\n", text); }

}  // namespace

std::vector<Program> all_programs() {
  return {pool_worker(),    data_loader(),        process_executor(), gunicorn(),  uwsgi(),      celery(),
          asyncio(),        subprocess(),         openblas(),         c_mutex(),   cpp_static(), python_lock(),
          popen_in_child(), condition_variable(), pipe_held_open(),   join_cycle()};
}

std::string render_report(const Program& program, std::size_t columns, bool colour, bool full) {
  render::TextOptions options;
  options.colour = colour;
  if (colour) options.link_host = "build-7";
  if (columns != 0) options.columns = columns;
  options.full = full;
  options.cwd = "/src/app";
  const auto findings = diagnose(program.model);
  std::string text = render::render_text(program.model, findings, options);
  text += render::render_waits(program.model, render::find_without_finding(program.model, findings), options);
  const std::string limits = render::render_limits(program.model.limits, options);
  return limits.empty() ? text : text + "\n" + limits;
}

std::string make_reports_page() {
  std::string page(kHead);
  const std::vector<Program> programs = all_programs();
  for (const Program& program : programs) {
    page += fmt::format("\n## {}\n", program.title) + console(render_report(program, kUsual));
  }
  for (const Program& program : programs) {
    if (program.name != kShownAtOtherWidths) continue;
    for (const std::size_t columns : {std::size_t{40}, std::size_t{120}})
      page += fmt::format("\n## The mutex at {} columns\n", columns) + console(render_report(program, columns));
    page += "\n## The mutex with `--full`, at 80 columns\n" + console(render_report(program, kUsual, false, true));
  }
  return page;
}

}  // namespace forksight::test
