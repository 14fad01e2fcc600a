"""The exception for what no scenario may do."""


class Undefined(Exception):
    """The behaviour is undefined, or depends on luck that is not modelled."""
