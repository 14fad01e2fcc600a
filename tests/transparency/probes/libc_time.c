/* Libc functions with locks of their own: time, the environment, random numbers.
 * ENV: FORKSIGHT_CURE=none,quiesce-libc=50
 */
#include "probe.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static const time_t kWhen = 1700000000;
static struct tm g_time;
static char g_text[64];
static wchar_t g_wide[64];

static void say_time(const char* what, const struct tm* time) {
  say("%s: %d-%d-%d %d:%d:%d", what, time->tm_year, time->tm_mon, time->tm_mday, time->tm_hour, time->tm_min,
      time->tm_sec);
}

PROBE(times) {
  SHOW(localtime_r(&kWhen, &g_time) == &g_time);
  say_time("localtime_r", &g_time);
  SHOW(gmtime_r(&kWhen, &g_time) == &g_time);
  say_time("gmtime_r", &g_time);
  SHOW(mktime(&g_time));
  SHOW(timelocal(&g_time));
  SHOW(timegm(&g_time));
  say_time("localtime", localtime(&kWhen));
  say_time("gmtime", gmtime(&kWhen));
  SHOW(strcmp(ctime(&kWhen), ctime_r(&kWhen, g_text)));
  SHOW((tzset(), 5));
  const time_t far_off = (time_t)1 << 60;
  SHOW(localtime(&far_off) == NULL);
  SHOW(gmtime_r(&far_off, &g_time) == NULL);
}

PROBE(formats) {
  gmtime_r(&kWhen, &g_time);
  SHOW(strftime(g_text, sizeof g_text, "%Y-%m-%d %Z", &g_time));
  say("%s", g_text);
  SHOW(strftime(g_text, 3, "%Y-%m-%d", &g_time));
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  SHOW(strftime_l(g_text, sizeof g_text, "%s %z", &g_time, locale));
  SHOW(wcsftime(g_wide, 64, L"%H:%M %Z", &g_time));
  memset(&g_time, 0, sizeof g_time);
  const char* const end = strptime("1700000000 x", "%s", &g_time);
  say_time(end == NULL ? "nothing" : end, &g_time);
  SHOW(getdate("no date") == NULL);
  say("getdate_err %d", getdate_err);
}

static char g_assignment[] = "FORKSIGHT_PROBE_B=2";
PROBE(environment) {
  SHOW(setenv("FORKSIGHT_PROBE_A", "1", 1));
  SHOW(setenv("FORKSIGHT_PROBE_A", "2", 0));
  say("A is %s", getenv("FORKSIGHT_PROBE_A"));
  SHOW(setenv("a=b", "1", 1));
  SHOW(setenv("", "1", 1));
  SHOW(putenv(g_assignment));
  say("B is %s", getenv("FORKSIGHT_PROBE_B"));
  SHOW(unsetenv("FORKSIGHT_PROBE_B"));
  SHOW(unsetenv("FORKSIGHT_PROBE_A"));
  SHOW(unsetenv("a=b"));
  say("%s", getenv("FORKSIGHT_PROBE_A") == NULL ? "A is gone" : "A is there");
}
static void clear_environment(void) { SHOW(clearenv()); }
PROBE(environment_of_a_child) { in_child(clear_environment); }

static char g_state[64];
PROBE(random_numbers) {
  srand(1);
  SHOW(rand());
  srandom(7);
  SHOW(random());
  char* const before = initstate(3, g_state, sizeof g_state);
  SHOW(random());
  SHOW(setstate(before) == g_state);
  SHOW(random());
  SHOW(initstate(3, g_state, 1) == NULL);
}
