"""Makes a scenario smaller as long as its verdict is wrong in the same way."""
from explore import TooMany
from oracle import judge
from scenario import Object, Scenario, Step
from undefined import Undefined


def without(scenario, indices):
    steps = [step for index, step in enumerate(scenario.steps) if index not in indices]
    forced = sum(1 for index in range(scenario.forced) if index not in indices)
    names = {word for step in steps for word in step.arguments}
    names |= {entry.at for entry in scenario.objects if entry.name in names}
    return Scenario([entry for entry in scenario.objects if entry.name in names], steps, forced)


def of_thread(scenario, name):
    return {index for index, step in enumerate(scenario.steps) if step.thread == name or name in step.arguments[:1]}


def plainer(scenario):
    """Yields variants of the scenario. In each variant, one object has no attributes and is not shared."""
    for index, entry in enumerate(scenario.objects):
        if entry.attributes or entry.shared:
            objects = list(scenario.objects)
            objects[index] = Object(entry.kind, entry.name, (), False, entry.number, entry.at)
            yield Scenario(objects, scenario.steps, scenario.forced)


def with_less_forced(scenario):
    """Yields the scenario with its last forced step as a free step. Yields nothing if it has no forced step, or if the last one is
    `done`."""
    if scenario.forced > 0 and scenario.steps[scenario.forced - 1].operation != "done":
        last = scenario.steps[scenario.forced - 1]
        steps = list(scenario.steps)
        steps[scenario.forced - 1] = Step(last.thread, last.operation, last.arguments)
        yield Scenario(scenario.objects, steps, scenario.forced - 1)


def smaller(scenario):
    threads = sorted({step.thread for step in scenario.steps} - {"main"})
    for name in threads:
        yield without(scenario, of_thread(scenario, name))
    for index in reversed(range(len(scenario.steps))):
        following = index + 1
        if following < len(scenario.steps) and scenario.steps[following].operation == "done":
            yield without(scenario, {index, following})
        yield without(scenario, {index})
    yield from plainer(scenario)
    yield from with_less_forced(scenario)


def size(scenario):
    return (len(scenario.steps), scenario.forced, len(scenario.objects), sum(len(entry.attributes) + entry.shared for entry in scenario.objects))


def shrink(scenario, is_still_wrong, budget=150):
    """Returns the smallest scenario that is found with at most `budget` calls of is_still_wrong(scenario, truth). Such a call
    may play the scenario."""
    tried = set()
    while True:
        for candidate in smaller(scenario):
            if str(candidate) in tried or size(candidate) >= size(scenario):
                continue
            tried.add(str(candidate))
            try:
                truth = judge(candidate)
            except (Undefined, TooMany, KeyError):
                continue
            if budget == 0:
                return scenario
            budget -= 1
            if is_still_wrong(candidate, truth):
                scenario = candidate
                break
        else:
            return scenario
