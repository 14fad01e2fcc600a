/* The loader, and with it the shim, has no part in this one. */
int main(void) { return 0; }
