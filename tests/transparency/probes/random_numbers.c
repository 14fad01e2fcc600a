/* Random numbers of drand48() and random(), and of the related functions that use the same state. */
#include "probe.h"

#include <stdlib.h>

static void draw(void) {
  SHOW(drand48() * 1e9);
  SHOW(lrand48());
  SHOW(mrand48());
  SHOW(rand());
  SHOW(random());
}

PROBE(sequences) {
  unsigned short seed[3] = {1, 2, 3};
  unsigned short parameters[7] = {1, 2, 3, 4, 5, 6, 7};
  srand48(11);
  srand(11);
  draw();
  SHOW(seed48(seed)[0]);
  draw();
  lcong48(parameters);
  draw();
  SHOW(seed48(seed)[1]);
  draw();
}

/* The shim watches the first random number of a child. */
PROBE_IN(in_children, ANYWHERE & ~(IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP)) {
  srand48(12);
  srand(12);
  draw();
  in_child(draw);
  in_child(draw);
  draw();
}
