"""A module whose body takes as long as its importer likes."""
