"""Keeps the results of the rounds, and computes ratios and times from them."""
import statistics


class Results:
    """The rounds of each measure. A round is {variant: nanoseconds}. All times of a round were measured within a few seconds. One
    variant is "bare", the program without a preloaded library."""

    def __init__(self):
        self.rounds = {}

    def add(self, measure, times):
        self.rounds.setdefault(measure, []).append(times)

    def ratios(self, measure, variant):
        return [times[variant] / times["bare"] for times in self.rounds[measure] if variant in times]

    def ratio(self, measure, variant):
        """Returns the median of the rounds' ratios of time to the bare time, or None if there is no round. If something
        disturbs a whole round, it affects both times of the round, so the ratio is still right."""
        ratios = self.ratios(measure, variant)
        return statistics.median_low(ratios) if ratios else None

    def times(self, measure, variant):
        """Returns the times of "bare" and of `variant` in the round with the median ratio."""
        rounds = [times for times in self.rounds[measure] if variant in times]
        ratios = self.ratios(measure, variant)
        middle = rounds[ratios.index(statistics.median_low(ratios))]
        return middle["bare"], middle[variant]
