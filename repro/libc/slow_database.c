// A database of users, groups and hosts for nsswitch. It stands for a slow directory service: it answers only when the
// case allows it, and its answer is always "not found".
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <nss.h>
#include <pwd.h>

#include "../baton.h"

struct baton fsslow_was_asked, fsslow_may_answer;

static enum nss_status answer(int* error) {
  baton_pass(fsslow_was_asked);
  baton_wait(fsslow_may_answer);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_fsslow_getpwnam_r(const char* name, struct passwd* out, char* buffer, size_t bytes, int* error) {
  (void)name, (void)out, (void)buffer, (void)bytes;
  return answer(error);
}

enum nss_status _nss_fsslow_getgrnam_r(const char* name, struct group* out, char* buffer, size_t bytes, int* error) {
  (void)name, (void)out, (void)buffer, (void)bytes;
  return answer(error);
}

enum nss_status _nss_fsslow_gethostbyname_r(const char* name, struct hostent* out, char* buffer, size_t bytes,
                                            int* error, int* host_error) {
  (void)name, (void)out, (void)buffer, (void)bytes;
  *host_error = HOST_NOT_FOUND;
  return answer(error);
}
