/* Prints whether the shim hears the annotations, which means that it defines forksight_lock_released(). */
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
