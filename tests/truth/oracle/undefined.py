"""The exception that the oracle raises for a scenario that has no single truth."""


class Undefined(Exception):
    """The behaviour of the scenario is undefined, or depends on chance that the oracle does not model."""
