// kTyped contains texts that a user may type if a program hangs. The search must put the right section first.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "command/symptoms.hpp"

namespace forksight {
namespace {

// What the user types, and the beginning of the title of the section.
constexpr std::pair<const char*, const char*> kTyped[] = {
    {"0% CPU", "A process is idle"},
    {"process does nothing 0 % cpu", "A process is idle"},
    {"process idle but never finishes", "A process is idle"},
    {"cpu usage is zero", "A process is idle"},
    {"0 percent cpu", "A process is idle"},
    {"program sleeps forever", "A process is idle"},
    {"100% CPU", "A child spins"},
    {"high cpu after fork", "A child spins"},
    {"99% cpu in child process", "A child spins"},
    {"busy loop sched_yield", "A child spins"},
    {"gunicron worker timeout", "gunicorn"},
    {"[CRITICAL] WORKER TIMEOUT (pid:1234)", "gunicorn"},
    {"gunicorn preload_app hangs", "gunicorn"},
    {"dataloder stuck", "DataLoader"},
    {"data loader hangs", "DataLoader"},
    {"pytroch training hangs at first batch", "DataLoader"},
    {"torch num_workers > 0 hangs", "DataLoader"},
    {"pytorch lightning stuck", "DataLoader"},
    {"subproces communicate hangs", "subprocess.wait()"},
    {"Popen.wait never returns", "subprocess.wait()"},
    {"subprocess.check_output hangs", "subprocess.wait()"},
    {"readline from child's stdout blocks", "subprocess.wait()"},
    {"ProcessPoolExecutor hangs", "pool.join()"},
    {"concurrent.futures submit never returns", "pool.join()"},
    {"multiprocesing Pool map stuck", "pool.join()"},
    {"pool.starmap hangs", "pool.join()"},
    {"apply_async get never returns", "pool.join()"},
    {"pool.close pool.join blocks forever", "pool.join()"},
    {"cuda initialization error in child process", "Cannot re-initialize"},
    {"torch.cuda.is_available then fork", "Cannot re-initialize"},
    {"celery prefork worker stuck", "celery"},
    {"celry worker hangs", "celery"},
    {"airflow task stays running", "Airflow"},
    {"puma cluster worker hung", "Ruby"},
    {"rails unicorn worker stuck", "Ruby"},
    {"php-fpm max children busy", "PHP-FPM"},
    {"R parallel mclapply stuck", "R: mclapply()"},
    {"data.table setDTthreads fork", "R: mclapply()"},
    {"jenkins build stuck", "A CI job"},
    {"gitlab job timeout", "A CI job"},
    {"No output has been received in the last 10m0s", "A CI job"},
    {"ctest timeout", "A test run"},
    {"pytest-xdist worker hangs", "A test run"},
    {"unittest never finishes", "A test run"},
    {"make -j8 hangs", "make, ssh or cron"},
    {"jobserver deadlock", "make, ssh or cron"},
    {"shell pipeline hangs", "make, ssh or cron"},
    {"ssh command does not return", "make, ssh or cron"},
    {"cron job never ends", "make, ssh or cron"},
    {"grep in a pipe waits for EOF", "make, ssh or cron"},
    {"strace shows only futex", "strace shows"},
    {"futex(0x7f1c, FUTEX_WAIT_PRIVATE, 2, NULL", "strace shows"},
    {"wchan futex_wait_queue_me", "strace shows"},
    {"__lll_lock_wait", "C or C++"},
    {"pthread_join never returns", "C or C++"},
    {"std::thread join hangs", "C or C++"},
    {"mutex deadlok", "C or C++"},
    {"two threads deadlock", "C or C++"},
    {"threading.Lock acquire blocks", "Python: every stack"},
    {"python logging hangs after fork", "Python: every stack"},
    {"py-spy shows acquire", "Python: every stack"},
    {"pyhton threads stuck in wait", "Python: every stack"},
    {"asyncio await never returns", "asyncio"},
    {"event loop stuck epoll_wait", "asyncio"},
    {"python hangs at shutdown", "It hangs at exit"},
    {"program does not exit", "It hangs at exit"},
    {"atexit handler hangs", "It hangs at exit"},
    {"fork never returns", "fork() itself"},
    {"pthread_atfork deadlock", "fork() itself"},
    {"lines printed twice", "Output appears twice"},
    {"duplicate output", "Output appears twice"},
    {"same random numbers in each worker", "All workers"},
    {"numpy random seed fork", "All workers"},
    {"SSL error: decryption failed or bad record mac", "Database"},
    {"MySQL server has gone away", "Database"},
    {"psycopg2 fork", "Database"},
    {"joblib Parallel hangs", "joblib"},
    {"GridSearchCV n_jobs=-1 stuck", "joblib"},
    {"skitlearn n_jobs", "joblib"},
    {"grpc channel hangs after fork", "gRPC"},
    {"tensorflow multiprocessing hang", "gRPC"},
    {"java Process.waitFor hangs", "Java"},
    {"node child_process never closes", "Node.js"},
    {"perl backticks hang", "Perl"},
    {"golang cgo fork hangs", "Go or Rust"},
    {"tokio runtime fork", "Go or Rust"},
    {"queue.get blocks forever", "Process.join()"},
    {"multiprocessing Queue join deadlock", "Process.join()"},
    {"proces.join hangs", "Process.join()"},
    {"postgres query cannot be cancelled", "PostgreSQL"},
    {"uwsgi harakiri", "uwsgi"},
    {"openblas hangs after fork", "OpenMP"},
    {"libgomp deadlock", "OpenMP"},
    {"omp parallel hangs in child", "OpenMP"},
    {"openmp fork", "OpenMP"},
    {"flock hangs", "A file lock"},
    {"file lock never released", "A file lock"},
    {"fcntl F_SETLKW stuck", "A file lock"},
    {"mkfifo open blocks", "open() of a FIFO"},
    {"named pipe hangs", "open() of a FIFO"},
    {"worker killed by OOM", "A worker was killed"},
    {"zombie process", "A worker was killed"},
    {"worker crashed and parent waits forever", "A worker was killed"},
    {"thread pool hangs in forked child", "C++: future.get()"},
    {"std::async future never ready", "C++: future.get()"},
    {"sharedd memory semaphore stuck after crash", "A worker was killed"},
    {"stuck in D state", "A process is idle"},
    {"server not responding idle", "A process is idle"},
    {"process idle for hours", "A process is idle"},
    {"dataloader pin_memory thread hangs", "DataLoader"},
    {"worker_init_fn", "DataLoader"},
    {"RuntimeError: DataLoader worker (pid 1234) is killed by signal: Killed", "DataLoader"},
    {"gunicorn --preload and threads", "gunicorn"},
    {"multiprocessing.Pool deadlock numpy", "pool.join()"},
    {"mutliprocessing hang", "pool.join()"},
    {"sempahore stuck after kill -9", "A worker was killed"},
    {"segfault in worker, parent hangs", "A worker was killed"},
    {"communciate hangs", "subprocess.wait()"},
    {"child blocks in write, parent in wait", "subprocess.wait()"},
    {"docker build hangs", "A CI job"},
    {"travis no output", "A CI job"},
    {"condition variable wait in child", "C++: future.get()"},
    {"pthread_cond_wait in forked child", "C++: future.get()"},
    {"pthread_mutex_lock in child after fork", "C or C++"},
    {"locks in opposite order", "C or C++"},
    {"rwlock stuck", "C or C++"},
    {"spinlock child 100%", "A child spins"},
    {"requests session hangs in gunicorn worker", "gunicorn"},
    {"sqlalchemy fork connection", "Database"},
    {"redis connection shared by workers", "Database"},
    {"pipe_read", "make, ssh"},
    {"pipe_write", "subprocess.wait()"},
    {"anon_pipe_read", "make, ssh"},
    {"anon_pipe_write", "subprocess.wait()"},
    {"futex_do_wait", "strace shows"},
    {"wchan do_epoll_wait", "asyncio"},
    {"This process is multi-threaded, use of fork() may lead to deadlocks in the child", "This process"},
    {"os.fork() DeprecationWarning multi-threaded process", "This process"},
    {"Python 3.12 DeprecationWarning fork", "This process"},
    {"no output", "A CI job"},
    {"daemon thread", "It hangs at exit"},
    {"threading.Lock", "Python: every stack"},
    {"threading lock deadlock", "Python: every stack"},
    {"Event.wait", "Python: every stack"},
    {"Condition.wait", "Python: every stack"},
    {"wait4", "subprocess.wait()"},
    {"requests hangs", "requests, urllib3"},
    {"go deadlock", "Go or Rust"},
    {"NCCL hang", "NCCL"},
    {"mpirun hangs", "MPI"},
    {"boto3", "requests, urllib3"},
    {"dask", "Dask"},
    {"vLLM", "NCCL"},
    {"deepspeed", "NCCL"},
    {"mod_wsgi", "mod_wsgi"},
    {"Selenium", "requests, urllib3"},
    {"kubectl pod stuck", "A pod of"},
    {"EOFError", "A worker was killed"},
    {"tcmalloc", "malloc()"},
    {"process won't exit", "It hangs at exit"},
    {"process won’t exit", "It hangs at exit"},
    {"gunicorn worker freezes", "gunicorn"},
    {"deadlocked threads", "C or C++"},
    {"celery workers died", "celery"},
    {"docker container hangs", "A pod of"},
    {"process hung at 0% cpu", "A process is idle"},
    {"threads are deadlocked in python", "Python: every"},
    {"file locked forever", "A file lock"},
    {"queue.put blocks", "Process.join()"},
    {"torch.distributed barrier timeout", "NCCL"},
    {"Watchdog caught collective operation timeout", "NCCL"},
    {"MPI_Barrier hangs", "MPI"},
    {"jemalloc deadlock after fork", "malloc()"},
    {"http request timeout", "requests, urllib3"},
    {"multiprocessing hangs on exit", "It hangs at exit"},
    {"shell script hangs in $(...)", "make, ssh"},
    {"the zombies", "A worker was killed"},
    {"mutexes", "C or C++"},
    {"spinning at 100 % cpu", "A child spins"},
    {"go program hangs in cgo", "Go or Rust"},
    {"rust", "Go or Rust"},
    {"docker build no output", "A CI job"},
    {"wait_for_partner", "open() of a FIFO"},
    {"locks_lock_inode_wait", "A file lock"},
    {"poll_schedule_timeout", "A process is idle"},
    {"goroutine deadlock", "Go or Rust"},
    {"bash hangs", "make, ssh"},
    {"logger deadlock", "Python: every"},
    {"python hangs", "Python: every"},
    {"ctrl-c does not work", "It hangs at exit"},
    {"asyncio task freezes", "asyncio"},
};

TEST(Search, FindsTheSectionFirst) {
  for (const auto& [typed, title] : kTyped) {
    const Found found = search_pages({typed});
    ASSERT_FALSE(found.symptoms.empty()) << typed;
    EXPECT_TRUE(found.symptoms.front().title.starts_with(title)) << typed << ": " << found.symptoms.front().title;
    EXPECT_TRUE(found.has_best) << typed;
  }
}

// Words that say only that something hangs. The section for a user who knows no more is the first of the titles.
TEST(Search, FindsTheGeneralSectionForWordsThatSayOnlyHang) {
  for (const char* const typed : {"hang", "hangs", "stuck", "freeze", "freezes", "frozen", "program freezes",
                                  "it won't", "won’t", "my process hangs", "stukc", "it doesn't return"}) {
    const Found found = search_pages({typed});
    ASSERT_FALSE(found.symptoms.empty()) << typed;
    EXPECT_TRUE(found.symptoms.front().title.starts_with("A process is idle"))
        << typed << ": " << found.symptoms.front().title;
    EXPECT_FALSE(found.has_best) << typed;
    EXPECT_EQ(found.unknown, std::vector<std::string>{}) << typed;
  }
  EXPECT_TRUE(search_pages({"...", ""}).symptoms.empty());
}

TEST(Search, TellsAnIdleProcessFromABusyOne) {
  for (const char* const share : {"0 %", "0%", "3 percent", "0.2 %"})
    EXPECT_TRUE(search_pages({share, "CPU"}).symptoms.front().title.starts_with("A process is idle")) << share;
  for (const char* const share : {"100 %", "100%", "99 percent", "98.7 %", "1600 %", "99999999999 %"})
    EXPECT_TRUE(search_pages({share, "CPU"}).symptoms.front().title.starts_with("A child spins")) << share;
}

TEST(Search, ReplacesMisspeltWords) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(search_pages({"gunicron"}).corrected, (Pairs{{"gunicron", "gunicorn"}}));
  EXPECT_EQ(search_pages({"dataloder"}).corrected, (Pairs{{"dataloder", "dataloader"}}));
  EXPECT_EQ(search_pages({"gunicorn"}).corrected, Pairs{});
  // The beginning of a word does not count as misspelt.
  EXPECT_EQ(search_pages({"subproces"}).corrected, Pairs{});
  // The search neither replaces numbers, addresses and names that no page has, nor reports them as unknown.
  const Found found = search_pages({"futex(0x7f1c00, FUTEX_WAIT_PRIVATE, 2, NULL) = ? 1234567"});
  EXPECT_EQ(found.corrected, Pairs{});
  EXPECT_TRUE(found.unknown.empty());
  // The search reports a word as unknown if the word resembles no word of the pages.
  const Found strange = search_pages({"gunicorn zebra"});
  EXPECT_EQ(strange.corrected, Pairs{});
  EXPECT_EQ(strange.unknown, std::vector<std::string>{"zebra"});
}

TEST(Search, LeavesWordsThatAreNotMisspelt) {
  for (const char* const word : {"systemd", "supervisord", "cython", "patch", "boost", "hängt", "žába"}) {
    const Found found = search_pages({word});
    EXPECT_TRUE(found.corrected.empty()) << word << ": " << found.corrected.front().second;
    EXPECT_EQ(found.unknown, std::vector<std::string>{word});
  }
  EXPECT_TRUE(search_pages({"bash hangs"}).corrected.empty());
}

TEST(Search, FoldsFormsOfOneWord) {
  constexpr std::pair<const char*, const char*> kForms[] = {{"zombies", "zombie"},
                                                            {"processes idle", "process idle"},
                                                            {"freezing mutex", "freezes mutex"},
                                                            {"running job", "runs job"},
                                                            {"child's stdout", "child stdout"},
                                                            {"ÜBER-mutex", "über mutex"},
                                                            {"“gunicorn” timeout…", "gunicorn timeout"}};
  for (const auto& [one, other] : kForms) {
    const Found first = search_pages({one});
    const Found second = search_pages({other});
    EXPECT_EQ(first.unknown, second.unknown) << one;
    ASSERT_FALSE(first.symptoms.empty()) << one;
    EXPECT_EQ(first.symptoms.front().title, second.symptoms.front().title) << one;
  }
  // Bytes that are not UTF-8 only separate words.
  EXPECT_EQ(search_pages({"\xff\xc3 gunicorn\xe2\x80"}).unknown, std::vector<std::string>{});
}

}  // namespace
}  // namespace forksight
