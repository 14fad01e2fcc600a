// A library whose constructor calls the program back (library_being_loaded.c).
extern void constructor_runs(void);

__attribute__((constructor)) static void construct(void) { constructor_runs(); }
