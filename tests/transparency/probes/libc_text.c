/* Libc functions with locks of their own: locales, messages, character sets, syslog. */
#include "probe.h"

#include <iconv.h>
#include <libintl.h>
#include <locale.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

/* With optimisation <libintl.h> defines some of these functions as macros. */
#undef gettext
#undef dgettext
#undef ngettext
#undef dngettext

extern int __xpg_strerror_r(int error, char* buffer, size_t size);
extern void __syslog_chk(int priority, int flag, const char* format, ...);
extern void __vsyslog_chk(int priority, int flag, const char* format, va_list arguments);

PROBE(locales) {
  const char* const name = setlocale(LC_ALL, "C.UTF-8");
  say("setlocale: %s", name == NULL ? "none" : name);
  SHOW(setlocale(LC_ALL, "no_SUCH") == NULL);
  say("is %s", setlocale(LC_CTYPE, NULL));
  const locale_t made = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  SHOW(made == (locale_t)0);
  SHOW(newlocale(LC_ALL_MASK, "no_SUCH", (locale_t)0) == (locale_t)0);
  const locale_t copy = duplocale(made);
  SHOW(copy == (locale_t)0);
  SHOW((freelocale(copy), freelocale(made), 5));
}

PROBE(messages) {
  say("textdomain %s", textdomain("forksight-probe"));
  say("bindtextdomain %s", bindtextdomain("forksight-probe", "/tmp"));
  say("codeset %s", bind_textdomain_codeset("forksight-probe", "UTF-8"));
  say("%s %s %s", gettext("a"), dgettext("forksight-probe", "b"), dcgettext("forksight-probe", "c", LC_MESSAGES));
  say("%s %s %s", ngettext("d", "ds", 2), dngettext("forksight-probe", "e", "es", 1),
      dcngettext("forksight-probe", "f", "fs", 3, LC_MESSAGES));
}

static char g_text[128];
PROBE(errors) {
  say("%s; %s", strerror(EINTR), strerror(4711));
  say("%s", strerror_r(4711, g_text, sizeof g_text));
  SHOW(__xpg_strerror_r(EINTR, g_text, 4));
  SHOW(__xpg_strerror_r(4711, g_text, sizeof g_text));
  say("%s; %s", strsignal(9), gai_strerror(EAI_AGAIN));
}
static void complain(void) {
  errno = ENOENT;
  perror("probe");
}
PROBE_IN(printed_error, ANYWHERE & ~IN_HANDLER) { in_child(complain); }

PROBE(conversions) {
  const iconv_t made = iconv_open("UTF-8", "ISO-8859-1");
  SHOW(made == (iconv_t)-1);
  SHOW(iconv_close(made));
  SHOW(iconv_open("no such", "UTF-8") == (iconv_t)-1);
}

static void log_list(int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (flag < 0) {
    vsyslog(LOG_DEBUG, format, arguments);
  } else {
    __vsyslog_chk(LOG_DEBUG, flag, format, arguments);
  }
  va_end(arguments);
}
/* Runs in a child. LOG_PERROR also prints the lines to standard error, so that they become part of the compared output.
 */
static void log_lines(void) {
  openlog("probe", LOG_PERROR, LOG_USER);
  SHOW(setlogmask(LOG_UPTO(LOG_DEBUG)));
  errno = ENOENT;
  syslog(LOG_DEBUG, "one %d %s %f %m %d %d %d %d %s", 1, "two", 3.5, 4, 5, 6, 7, "eight");
  __syslog_chk(LOG_DEBUG, 1, "nine %ld %.2f", 10L, 11.25);
  log_list(-1, "twelve %d", 12);
  log_list(1, "thirteen %s", "14");
  SHOW((closelog(), 5));
}
PROBE_IN(system_log, ANYWHERE & ~IN_HANDLER) { in_child(log_lines); }
