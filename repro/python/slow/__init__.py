"""A package whose module `plugin` calls a function of its importer while it is being imported."""
