/* Prints whether the annotations reach the shim. The annotations reach the shim if the program finds
 * forksight_lock_released(), which the shim defines. */
#include <forksight/annotate.h>
#include <stdio.h>

static int lock;

int main(void) {
  FORKSIGHT_LOCK_WAITING(&lock, "lock");
  FORKSIGHT_LOCK_ACQUIRED(&lock, "lock");
  FORKSIGHT_LOCK_RELEASED(&lock);
  FORKSIGHT_LOCK_GAVE_UP(&lock);
  void (*released)(const volatile void*);
  FORKSIGHT_FIND_(forksight_lock_released, released);
  puts(released ? "heard" : "not heard");
  return 0;
}
