/* A statically linked program. No loader runs in it, so the shim is not preloaded. */
int main(void) { return 0; }
