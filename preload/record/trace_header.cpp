#include "record/trace_header.hpp"

#include <string.h>
#include <sys/utsname.h>

#include "forksight/version.hpp"
#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/executable.hpp"
#include "guest/sys.hpp"
#include "loader/libc.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::TraceHeader;

// Not on the stack, which may be small. Only one thread at a time creates the file.
constinit utsname g_names = {};

const char* host_name() {
  if (sys::call(SYS_uname, sys::word(&g_names)) != 0) g_names.nodename[0] = '\0';
  g_names.nodename[63] = '\0';
  return g_names.nodename[0] == '\0' ? "unknown" : g_names.nodename;
}

std::uint64_t read_start_ticks() {
  static char text[512];  // not on the stack, for the same reason as g_names
  const int fd = sys::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const sys::Text got = sys::read_all(fd, text, sizeof text - 1);
  sys::close(fd);
  if (got.bytes == 0 || !got.is_whole) return 0;  // a number that is cut off would be a wrong number
  text[got.bytes] = '\0';
  // Field 2 is the name in parentheses, which may contain anything. Field 3 follows the last ')'. The start time is
  // field 22.
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  std::uint64_t ticks = 0;
  if (at != nullptr) {
    for (++at; *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<std::uint64_t>(*at - '0');
  }
  return ticks;
}

void fill_identity(TraceHeader& head) {
  const char* const host = host_name();
  memcpy(head.host, host, strnlen(host, sizeof head.host - 1));
  const std::size_t exe = read_executable_path(head.exe, sizeof head.exe);
  if (exe == sizeof head.exe) head.flags |= trace::kExeCut;
  head.exe[exe == sizeof head.exe ? exe - 1 : exe] = '\0';
  const int fd = sys::open("/proc/thread-self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const sys::Text got = sys::read_all(fd, head.cmdline, sizeof head.cmdline);
    head.cmdline_bytes = static_cast<std::uint32_t>(got.bytes);
    if (got.bytes == sizeof head.cmdline || (got.bytes > 0 && !got.is_whole)) head.flags |= trace::kCmdlineCut;
    sys::close(fd);
  }
}

char* put_text(char* at, const char* text) {
  const std::size_t length = strlen(text);
  memcpy(at, text, length + 1);
  return at + length;
}

char* put_hex(char* at, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 15U];
  *at = '\0';
  return at;
}

char* put_decimal(char* at, std::uint32_t value) {
  char digits[10];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) *at++ = digits[--count];
  *at = '\0';
  return at;
}

}  // namespace

void fill_trace_header(TraceHeader& head, std::uint64_t allocated, std::uint64_t first_free) {
  head.version = trace::kVersion;
  head.header_bytes = trace::kHeaderBytes;
  head.byte_order = trace::kByteOrder;
  head.pointer_bytes = sizeof(void*);
  head.capacity = trace::kMaxTraceBytes;
  head.allocated.store(allocated, std::memory_order_relaxed);
  head.tail.store(first_free, std::memory_order_relaxed);
  head.realtime_ns = now_ns(CLOCK_REALTIME);
  head.monotonic_ns = now_ns();
  head.start_ticks = read_start_ticks();
  head.pid = sys::getpid();
  head.ppid = sys::getppid();
  head.rank = g_config.rank;
  head.world_size = g_config.world_size;
  head.omp_policy = g_config.omp;
  head.orphan_policy = g_config.on_orphan;
  head.cures = g_config.cures.bits;
  head.libc_major = g_libc.version.major;
  head.libc_minor = g_libc.version.minor;
  head.libc_condition = static_cast<std::uint8_t>(g_libc.condition);
  memcpy(head.rank_variable, g_config.rank_variable, sizeof head.rank_variable);
  memcpy(head.writer_version, FORKSIGHT_VERSION, sizeof(FORKSIGHT_VERSION));
  fill_identity(head);
  __atomic_store_n(&head.magic, trace::kMagic, __ATOMIC_RELEASE);
}

void compose_trace_path(char (&path)[kTracePathBytes]) {
  char* at = put_text(path, g_config.out);
  *at++ = '/';
  at = put_text(at, host_name());
  *at++ = '.';
  at = put_decimal(at, static_cast<std::uint32_t>(sys::getpid()));
  *at++ = '.';
  at = put_hex(at, now_ns(CLOCK_REALTIME));
  put_text(at, trace::kFileSuffix);
}

}  // namespace forksight
