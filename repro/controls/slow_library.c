// A library whose constructor calls a function of the program that loads it (library_being_loaded.c).
extern void constructor_runs(void);

__attribute__((constructor)) static void construct(void) { constructor_runs(); }
