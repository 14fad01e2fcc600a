"""What no scenario may do."""


class Undefined(Exception):
    """The behaviour is undefined, or hangs on luck that is not modelled."""
