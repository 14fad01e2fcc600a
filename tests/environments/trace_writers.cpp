// trace_writers SCENE: a forked child writes wrong data into the trace, which parent and child both have mapped. A
// malicious child with fewer rights, or a child with a wild pointer, could do the same. Without the shim there is no
// trace, and the program must print the same as with the shim. If the child finds no trace although the shim is loaded,
// it ends with status 2.
//
// Then the parent calls fork() again, and functions that lock and wait. At the end, the parent checks that the shim has
// not written to a certain piece of the parent's memory.
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "forksight/trace/format.hpp"

namespace {

using forksight::trace::TraceHeader;

constexpr unsigned kNobody = 65534;
constexpr std::size_t kVictimWords = 4096;
constexpr int kForks = 4;

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_other = PTHREAD_MUTEX_INITIALIZER;
int g_ready[2];
int g_stop[2];
std::uint64_t* g_victim;  // on the first thread's stack, at a higher address than the mapping of the trace

void need(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(2);
}

void* hold(void* unused) {
  char byte = 0;
  pthread_mutex_lock(&g_lock);
  need(write(g_ready[1], &byte, 1) == 1 && read(g_stop[0], &byte, 1) == 0, "pipe");
  pthread_mutex_unlock(&g_lock);
  return unused;
}

struct Mapped {
  char* bytes;
  std::size_t size;  // number of bytes of the file that are mapped
};

// Finds the mapping of the trace. `bytes` is null if there is no trace.
Mapped find_trace() {
  char line[4096];
  Mapped found{nullptr, 0};
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  need(maps != nullptr, "/proc/self/maps");
  while (std::fgets(line, sizeof line, maps) != nullptr && found.bytes == nullptr) {
    unsigned long start = 0;
    unsigned long end = 0;
    char* const path = std::strchr(line, '/');
    if (path == nullptr || std::strstr(path, ".fstrace") == nullptr) continue;
    path[std::strcspn(path, "\n")] = '\0';
    struct stat status {};
    if (std::sscanf(line, "%lx-%lx", &start, &end) != 2 || stat(path, &status) != 0) continue;
    const auto size = static_cast<std::size_t>(status.st_size);
    found = {reinterpret_cast<char*>(start), size < end - start ? size : end - start};
  }
  std::fclose(maps);
  return found;
}

std::size_t end_of_records(const Mapped& trace) {
  return reinterpret_cast<const TraceHeader*>(trace.bytes)->tail.load();
}

// Fills the free part of the trace with records whose size is 0. Code that goes from record to record would never get
// past such a record.
void spoil_sizes(const Mapped& trace) {
  constexpr std::uint64_t kNoBytes = std::uint64_t{1} << 48U;
  for (std::size_t at = end_of_records(trace); at + 8 <= trace.size; at += 8) {
    std::memcpy(trace.bytes + at, &kNoBytes, sizeof kNoBytes);
  }
}

// Fills the trace after its header with 0xff. Sets the hint for the end of the records to 0, which is before all
// records.
void spoil_all(const Mapped& trace) {
  std::memset(trace.bytes + sizeof(TraceHeader), 0xff, trace.size - sizeof(TraceHeader));
  reinterpret_cast<TraceHeader*>(trace.bytes)->tail.store(0);
}

void spoil_header(const Mapped& trace) { std::memset(trace.bytes, 0xff, sizeof(TraceHeader)); }

// Makes the hint for the end of the records point outside the file, to memory of the parent. That memory is zero, like
// free space of the file.
void aim_at_victim(const Mapped& trace) {
  auto* const header = reinterpret_cast<TraceHeader*>(trace.bytes);
  header->capacity = ~std::uint64_t{0};
  header->allocated.store(~std::uint64_t{0});
  header->tail.store(reinterpret_cast<std::uint64_t>(g_victim) - reinterpret_cast<std::uint64_t>(trace.bytes));
}

// Overwrites each field of each record with a reference to an address at which nothing is mapped.
void aim_references(const Mapped& trace) {
  constexpr std::uint64_t kReference = std::uint64_t{1} << 45U;
  const std::size_t end = end_of_records(trace);
  for (std::size_t at = sizeof(TraceHeader); at + 32 <= end;) {
    std::uint64_t word = 0;
    std::memcpy(&word, trace.bytes + at, sizeof word);
    const std::uint32_t size = forksight::trace::word_size(word);
    need(size >= 32 && at + size <= end, "the trace");
    for (std::size_t field = at + 32; field + 8 <= at + size; field += 8) {
      std::memcpy(trace.bytes + field, &kReference, sizeof kReference);
    }
    at += size;
  }
}

constexpr struct {
  const char* name;
  void (*spoil)(const Mapped& trace);
} kScenes[] = {{"sizes", spoil_sizes},
               {"all", spoil_all},
               {"header", spoil_header},
               {"victim", aim_at_victim},
               {"references", aim_references}};

bool has_shim() {
  const char* const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "libforksight.so") != nullptr;
}

void spoil_in_child(const char* scene) {
  const Mapped trace = find_trace();
  need((trace.bytes != nullptr) == has_shim(), "a trace must be mapped if the shim is loaded, and only then");
  if (geteuid() == 0) need(setgid(kNobody) == 0 && setuid(kNobody) == 0, "setuid");
  bool is_known = false;
  for (const auto& one : kScenes) {
    if (std::strcmp(one.name, scene) != 0) continue;
    is_known = true;
    if (trace.bytes != nullptr) one.spoil(trace);
  }
  need(is_known, scene);
}

void fork_and_wait(const char* scene) {
  const pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    if (scene != nullptr) spoil_in_child(scene);
    _exit(0);
  }
  int status = -1;
  need(waitpid(child, &status, 0) == child, "waitpid");
  std::printf("child: %d\n", status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, nullptr, _IONBF, 0);
  alarm(20);
  alignas(4096) std::uint64_t victim[kVictimWords] = {};
  g_victim = victim;
  pthread_t thread{};
  char byte = 0;
  int ends[2];
  need(pipe(g_ready) == 0 && pipe(g_stop) == 0, "pipe");
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const int epoll = epoll_create1(0);
  epoll_event event{EPOLLIN, {}};
  need(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll");
  need(pthread_create(&thread, nullptr, hold, nullptr) == 0 && read(g_ready[0], &byte, 1) == 1, "pthread_create");
  fork_and_wait(nullptr);
  fork_and_wait(argv[1]);
  for (int i = 0; i < kForks; ++i) {
    pthread_mutex_lock(&g_other);
    pthread_mutex_unlock(&g_other);
    std::printf("events: %d\n", epoll_wait(epoll, &event, 1, 0));
    fork_and_wait(nullptr);
  }
  close(g_stop[1]);
  pthread_join(thread, nullptr);
  std::size_t changed = 0;
  for (const std::uint64_t word : victim) changed += word != 0 ? 1 : 0;
  std::printf("changed: %zu words\n", changed);
  return 0;
}
