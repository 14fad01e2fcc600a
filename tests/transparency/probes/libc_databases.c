/* Libc functions with locks of their own: users, groups, hosts, services, logins. */
#include "probe.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <shadow.h>
#include <string.h>
#include <sys/socket.h>
#include <utmpx.h>

/* The contexts for functions that read files and need kilobytes of stack. */
#define ROOMY (ANYWHERE & ~(IN_SMALL_THREAD | IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP))

static char g_buffer[8192];

PROBE_IN(users, ROOMY) {
  struct passwd entry;
  struct passwd* found = NULL;
  const struct passwd* const root = getpwnam("root");
  say("root is %s", root == NULL ? "unknown" : root->pw_dir);
  SHOW(getpwuid(0) == NULL);
  SHOW(getpwnam("no such user") == NULL);
  setpwent();
  SHOW(getpwent() == NULL);
  SHOW(getpwent_r(&entry, g_buffer, sizeof g_buffer, &found));
  SHOW(getpwent_r(&entry, g_buffer, 1, &found));
  SHOW((endpwent(), 5));
  SHOW(getspnam("root") == NULL);
  setspent();
  SHOW(getspent() == NULL);
  SHOW((endspent(), 5));
}

PROBE_IN(groups, ROOMY) {
  struct group entry;
  struct group* found = NULL;
  SHOW(getgrnam("root") == NULL);
  SHOW(getgrgid(0) == NULL);
  SHOW(getgrnam("no such group") == NULL);
  setgrent();
  SHOW(getgrent() == NULL);
  SHOW(getgrent_r(&entry, g_buffer, sizeof g_buffer, &found));
  SHOW((endgrent(), 5));
  char *host = NULL, *user = NULL, *domain = NULL;
  SHOW(setnetgrent("no-such-netgroup"));
  SHOW(getnetgrent(&host, &user, &domain));
  SHOW((endnetgrent(), 5));
}

PROBE_IN(hosts, ROOMY) {
  const in_addr_t loopback = htonl(INADDR_LOOPBACK);
  struct hostent entry;
  struct hostent* found = NULL;
  int error = 0;
  SHOW(gethostbyname("127.0.0.1") == NULL);
  SHOW(gethostbyname2("127.0.0.1", AF_INET) == NULL);
  SHOW(gethostbyaddr(&loopback, sizeof loopback, AF_INET) == NULL);
  SHOW(gethostbyname_r("127.0.0.1", &entry, g_buffer, sizeof g_buffer, &found, &error));
  SHOW(gethostbyname2_r("127.0.0.1", AF_INET, &entry, g_buffer, sizeof g_buffer, &found, &error));
  SHOW(gethostbyaddr_r(&loopback, sizeof loopback, AF_INET, &entry, g_buffer, sizeof g_buffer, &found, &error));
  say("h_errno %d", h_errno);
  sethostent(0);
  SHOW(gethostent() == NULL);
  SHOW((endhostent(), 5));
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
  struct addrinfo* list = NULL;
  SHOW(getaddrinfo("127.0.0.1", "80", &hints, &list));
  if (list != NULL) {
    SHOW(getnameinfo(list->ai_addr, list->ai_addrlen, g_buffer, 100, NULL, 0, NI_NUMERICHOST));
    say("%s", g_buffer);
    freeaddrinfo(list);
  }
  SHOW(getaddrinfo("no host", "80", &hints, &list));
  SHOW(getnetbyname("loopback") == NULL);
  SHOW(getnetbyaddr(127, AF_INET) == NULL);
}

PROBE_IN(services, ROOMY) {
  SHOW(getservbyname("http", "tcp") == NULL);
  SHOW(getservbyport(htons(80), "tcp") == NULL);
  setservent(0);
  SHOW(getservent() == NULL);
  SHOW((endservent(), 5));
  SHOW(getprotobyname("tcp") == NULL);
  SHOW(getprotobynumber(6) == NULL);
  setprotoent(0);
  SHOW(getprotoent() == NULL);
  SHOW((endprotoent(), 5));
}

PROBE_IN(logins, ROOMY) {
  const struct utmpx wanted = {.ut_type = BOOT_TIME};
  utmpxname("/dev/null");
  setutxent();
  SHOW(getutxent() == NULL);
  SHOW(getutxid(&wanted) == NULL);
  SHOW(getutxline(&wanted) == NULL);
  SHOW(pututxline(&wanted) == NULL);
  SHOW((endutxent(), 5));
}
