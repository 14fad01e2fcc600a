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
// Python, and "read libc.so.6" is a frame without a line.
model::Frame frame_of(std::string_view text) {
  model::Frame frame;
  const std::size_t space = text.rfind(' ');
  const std::string_view place = text.substr(space + 1);
  frame.function = text.substr(0, space);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    const bool is_interpreter = place.starts_with("python");
    frame.module = is_interpreter ? fmt::format("/usr/bin/{}", place) : fmt::format("{}{}", kLibraries, place);
    frame.offset = 0x2f40;
    return frame;
  }
  const std::string_view file = place.substr(0, colon);
  frame.file = file.starts_with('/') ? std::string(file) : fmt::format("/src/app/{}", file);
  frame.line = std::stoi(std::string(place.substr(colon + 1)));
  frame.python = file.ends_with(".py");
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

void be_python(model::Model& model, const char* script) {
  for (model::Process& process : model.processes) {
    process.exe = "/usr/bin/python3.11";
    process.cmdline = {"python3", script};
  }
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

const LockScene kSemaphore{.kind = trace::LockKind::kSemaphore, .memory = semaphore_memory(0)};

Program pool_worker() {
  Program program{"pool-worker",
                  "A worker of `multiprocessing.Pool` logs, and the lock of the log is held",
                  locked(kSemaphore),
                  {"jobs.py:14", "jobs.py:31"},
                  "multiprocessing.get_context"};
  model::Model& model = program.model;
  be_python(model, "jobs.py");
  wait_for_child(model, "pipe");
  model.touches[0].stack = stack_of(
      {"__new_sem_wait_slow64 libc.so.6", "PyThread_acquire_lock_timed python3.11",
       "acquire /usr/lib/python3.11/logging/__init__.py:917", "handle /usr/lib/python3.11/logging/__init__.py:976",
       "convert jobs.py:14", "mapstar /usr/lib/python3.11/multiprocessing/pool.py:48",
       "worker /usr/lib/python3.11/multiprocessing/pool.py:125",
       "run /usr/lib/python3.11/multiprocessing/process.py:108",
       "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:71",
       "_repopulate_pool /usr/lib/python3.11/multiprocessing/pool.py:329", "main jobs.py:31", "<module> jobs.py:36",
       "_PyEval_EvalFrameDefault python3.11", "Py_RunMain python3.11", "__libc_start_main_impl libc.so.6"});
  model.forks[0].stack =
      stack_of({"fork libc.so.6", "os_fork python3.11", "_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:66",
                "_repopulate_pool /usr/lib/python3.11/multiprocessing/pool.py:329", "main jobs.py:31",
                "<module> jobs.py:36", "Py_RunMain python3.11"});
  model.forks[0].held[0].acquired_at =
      stack_of({"PyThread_acquire_lock_timed python3.11", "emit /usr/lib/python3.11/logging/__init__.py:1113",
                "beat jobs.py:22", "run /usr/lib/python3.11/threading.py:982"});
  return program;
}

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
  be_python(model, "dl2.py");
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

Program python_lock() {
  Program program{"python-lock",
                  "A child puts into a `queue.Queue` whose lock another thread held",
                  locked(kSemaphore),
                  {"worker.py:12", "train.py:50"}};
  model::Model& model = program.model;
  be_python(model, "train.py");
  model.touches[0].stack =
      stack_of({"__new_sem_wait_slow64 libc.so.6", "PyThread_acquire_lock_timed python3.11",
                "put /usr/lib/python3.11/queue.py:133", "work worker.py:12", "<module> train.py:51",
                "Py_RunMain python3.11", "__libc_start_main_impl libc.so.6"});
  model.forks[0].held[0].acquired_at = stack_of(
      {"get /usr/lib/python3.11/queue.py:165", "load loader.py:33", "run /usr/lib/python3.11/threading.py:982"});
  model.forks[0].stack = stack_of({"fork libc.so.6", "os_fork python3.11", "main train.py:50", "<module> train.py:90"});
  return program;
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

// Returns a child that waits for a lock of Python. `child`: the frames of the functions that the child has called since
// the fork, innermost first. `outer`: the frames of the functions that had called fork(). They belong to the framework
// and to the program.
Program python_framework(Program program, std::initializer_list<std::string_view> child,
                         std::initializer_list<std::string_view> outer) {
  program.model = locked(kSemaphore);
  model::Model& model = program.model;
  be_python(model, "app.py");
  const auto append = [](model::Stack& stack, const model::Stack& more) {
    stack.frames.insert(stack.frames.end(), more.frames.begin(), more.frames.end());
  };
  model.touches[0].stack = stack_of({"__new_sem_wait_slow64 libc.so.6", "PyThread_acquire_lock_timed python3.11"});
  append(model.touches[0].stack, stack_of(child));
  append(model.touches[0].stack, stack_of(outer));
  append(model.touches[0].stack, stack_of({"Py_RunMain python3.11", "__libc_start_main_impl libc.so.6"}));
  model.forks[0].stack = stack_of({"fork libc.so.6", "os_fork python3.11"});
  append(model.forks[0].stack, stack_of(outer));
  model.forks[0].held[0].acquired_at =
      stack_of({"PyThread_acquire_lock_timed python3.11", "emit /usr/lib/python3.11/logging/__init__.py:1113",
                "report metrics.py:22", "run /usr/lib/python3.11/threading.py:982"});
  return program;
}

Program gunicorn() {
  return python_framework(
      {"gunicorn",
       "A worker of gunicorn logs a request, and the lock of the log is held",
       {},
       {"views.py:14"},
       "post_fork"},
      {"acquire /usr/lib/python3.11/logging/__init__.py:917", "handle /usr/lib/python3.11/logging/__init__.py:976",
       "index views.py:14", "handle_request /usr/lib/python3/dist-packages/gunicorn/workers/sync.py:178",
       "init_process /usr/lib/python3/dist-packages/gunicorn/workers/base.py:142"},
      {"spawn_worker /usr/lib/python3/dist-packages/gunicorn/arbiter.py:589",
       "run /usr/lib/python3/dist-packages/gunicorn/arbiter.py:202", "<module> /usr/bin/gunicorn:8"});
}

Program celery() {
  return python_framework(
      {"celery", "A task of celery logs, and the lock of the log is held", {}, {"tasks.py:31"}, "worker_process_init"},
      {"acquire /usr/lib/python3.11/logging/__init__.py:917", "handle /usr/lib/python3.11/logging/__init__.py:976",
       "resize tasks.py:31", "trace_task /usr/lib/python3/dist-packages/celery/app/trace.py:451",
       "workloop /usr/lib/python3/dist-packages/billiard/pool.py:362"},
      {"_create_worker_process /usr/lib/python3/dist-packages/billiard/pool.py:1158",
       "on_start /usr/lib/python3/dist-packages/celery/concurrency/prefork.py:126", "<module> /usr/bin/celery:8"});
}

Program uwsgi() {
  return python_framework(
      {"uwsgi", "A worker of uWSGI logs a request, and the lock of the log is held", {}, {"wsgi.py:19"}, "lazy-apps"},
      {"acquire /usr/lib/python3.11/logging/__init__.py:917", "handle /usr/lib/python3.11/logging/__init__.py:976",
       "application wsgi.py:19", "uwsgi_request_wsgi uwsgi-core", "uwsgi_cycle uwsgi-core"},
      {"uwsgi_start uwsgi-core", "main uwsgi-core"});
}

Program process_executor() {
  return python_framework(
      {"process-executor",
       "A call of `ProcessPoolExecutor` logs, and the lock of the log is held",
       {},
       {"pages.py:9", "pages.py:40"},
       "mp_context"},
      {"acquire /usr/lib/python3.11/logging/__init__.py:917", "handle /usr/lib/python3.11/logging/__init__.py:976",
       "render pages.py:9", "_process_worker /usr/lib/python3.11/concurrent/futures/process.py:256",
       "run /usr/lib/python3.11/multiprocessing/process.py:108"},
      {"_launch /usr/lib/python3.11/multiprocessing/popen_fork.py:71",
       "submit /usr/lib/python3.11/concurrent/futures/process.py:731", "main pages.py:40", "<module> pages.py:44"});
}

Program asyncio() {
  return python_framework({"asyncio",
                           "A coroutine of `asyncio` forks, and the lock of the log is held",
                           {},
                           {"jobs.py:12", "jobs.py:30"},
                           "create_subprocess_exec()"},
                          {"acquire /usr/lib/python3.11/logging/__init__.py:917",
                           "handle /usr/lib/python3.11/logging/__init__.py:976", "convert jobs.py:12"},
                          {"start jobs.py:30", "_run_once /usr/lib/python3.11/asyncio/base_events.py:1922",
                           "run_forever /usr/lib/python3.11/asyncio/base_events.py:607", "<module> jobs.py:41"});
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
- What forksight could not see, such as a file without symbols, is listed once, at the end.
- The line at the top says how many findings there are, and in how many processes. For `forksight why` these are the
  processes that were asked about, their descendants, and other processes on which their waits depend. A shell that only
  waits for its child is not counted. But the shell may be named under `Waiting`, and the JSON report has the shell.

## In a pipe

If the reader of the pipe ends early, as in `forksight why PID | head`, forksight ends by SIGPIPE without a message, as
other programs do. If SIGPIPE is ignored, writing to such a pipe fails. If a report cannot be written, for this or
another reason, forksight prints an error message, and exits with 3 (`run` and `ci` with 125).

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
