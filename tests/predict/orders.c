// predict_orders SCENE: takes locks in the orders of the scene. No scene hangs.
#include "orders.h"

static void play(const struct scene* of, const char* name) {
  for (; of->name != NULL; ++of) {
    if (strcmp(of->name, name) != 0) continue;
    of->play();
    exit(0);
  }
}

int main(int count, char** arguments) {
  if (count == 2) play(harmless_scenes, arguments[1]);
  if (count == 2) play(inverted_scenes, arguments[1]);
  return 2;
}
