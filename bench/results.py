"""The results of the rounds, and the figures that are made from them."""
import statistics


class Results:
    """A round has the nanoseconds of one measure for each variant, one of which is "bare", all from the same few seconds."""

    def __init__(self):
        self.rounds = {}

    def add(self, measure, times):
        self.rounds.setdefault(measure, []).append(times)

    def ratios(self, measure, variant):
        return [times[variant] / times["bare"] for times in self.rounds[measure] if variant in times]

    def ratio(self, measure, variant):
        """The median of the rounds' ratios, because a disturbance of a whole round affects both times. None without rounds."""
        ratios = self.ratios(measure, variant)
        return statistics.median_low(ratios) if ratios else None

    def times(self, measure, variant):
        """The times of bare and `variant` in the round with the median ratio."""
        rounds = [times for times in self.rounds[measure] if variant in times]
        ratios = self.ratios(measure, variant)
        middle = rounds[ratios.index(statistics.median_low(ratios))]
        return middle["bare"], middle[variant]
