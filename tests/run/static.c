/* A static program: no loader runs, so the shim is not preloaded. */
int main(void) { return 0; }
