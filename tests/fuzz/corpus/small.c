struct point { int x, y; };
static struct point origin = {1, 2};
static inline __attribute__((always_inline)) int add(int a, int b) { return a + b + origin.x; }
__attribute__((noinline)) int twice(int n) { volatile char room[64]; room[n & 63] = 1; return add(n, n) + room[1]; }
__attribute__((noinline)) int more(int n) { return twice(n) + 1; }
void _start(void) { origin.y = more(3); for (;;) {} }
