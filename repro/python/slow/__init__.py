"""A package with the module `plugin`. While `plugin` is being imported, it calls a function of the program."""
