"""Searches for false verdicts: see README.md in this folder.

  fuzz.py play FILE|SEED...      plays scenarios, and prints each with its truth, and the verdict on the report of each mode (run, why, core)
  fuzz.py seeds FIRST COUNT      plays many scenarios, and prints a line for each wrong verdict, and the figures. With
                                 --results FILE the command may be stopped (Ctrl-C, SIGTERM, power failure). When it is
                                 called again, it plays only the seeds that are missing in FILE
  fuzz.py reduce FILE|SEED MODE  finds a smaller scenario with the same wrong verdict; --out FILE writes it into FILE
  fuzz.py record COUNT           chooses the scenarios of `fuzz.py check`, and writes seeds.scenarios
  fuzz.py check                  plays the recorded scenarios: no verdict may be worse than the recorded one. With --second it
                                 plays all scenarios in mended/, but only every second one of seeds.scenarios
"""
import argparse
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "oracle"), str(HERE / "judge"), str(HERE.parent / "cases")]

import memory_groups  # noqa: E402
from campaign import Progress, Results, stop_on_signal, stream, verdicts_of  # noqa: E402
from figures import Figures  # noqa: E402
from generate import generate  # noqa: E402
from oracle import judge as find_truth  # noqa: E402
from page import write_part  # noqa: E402
from scenario import parse  # noqa: E402
from shrink import shrink  # noqa: E402
from stage import Disagrees, become_reaper, play_bare, play_run  # noqa: E402
from verdict import ORDER, judge  # noqa: E402

SEEDS = HERE / "seeds.scenarios"
MENDED = HERE / "mended"
MUST_BE_RIGHT = "# must be: right\n"  # a file in mended/ with this line must get the verdict `right`; a file without it must not get one of BAD
BAD = ("wrong", "harmed", "disagrees")
MOST_UNJUDGED = 0.05  # --strict: the largest share of scenarios whose program does not do what the oracle says


def load(name):
    if name.replace(".", "").isdigit():
        return generate(name)
    scenario = parse(Path(name).read_text())
    return scenario, find_truth(scenario)


def compare(result, bare, truth, mode):
    """Returns (verdict, judged findings, a note)."""
    if (sorted(result["output"].split("\n")), result["status"]) != (sorted(bare["output"].split("\n")), bare["status"]):
        return "harmed", [], f"bare: {bare['output']!r} {bare['status']}, {mode}: {result['output']!r} {result['status']}"
    return (*judge(truth, result, mode), "")


def play_all(scenario, truth, modes, tools):
    """Returns {mode: (verdict, judged findings, note)}. The bare play comes first. If the bare play disagrees with the
    oracle, nothing is judged, and the only key is "bare". `why` and `core` examine the bare play when all its threads
    have come to rest.
    If the scenario ends by itself, `why` and `core` have no entry. `run` plays the scenario again."""
    try:
        bare, looked = play_bare(scenario, truth, tools, modes)
    except Disagrees as disagreement:
        return {"bare": ("disagrees", [], str(disagreement))}
    results = {}
    for mode in modes:
        if mode != "run" and truth.is_over():
            continue
        try:
            results[mode] = compare(play_run(scenario, truth, tools) if mode == "run" else looked[mode], bare, truth, mode)
        except Disagrees as disagreement:
            results[mode] = ("harmed", [], str(disagreement))
    return results


def show_truth(truth):
    for wait in truth.waits.values():
        why = f"for ever: {wait.cause} {' '.join(wait.lost)}" if not wait.open_by else f"until {', '.join(wait.open_by)}"
        print(f"  {wait.thread} of {wait.process}: {wait.operation} {wait.kind} {wait.name}, {why}")
    print(f"  ended: {truth.ended}")


def show(results):
    for mode, (verdict, judged, note) in results.items():
        print(f"  {mode}: {verdict} {note}")
        for entry in judged:
            print(f"    {entry}")


def play(arguments):
    for name in arguments.scenarios:
        scenario, truth = load(name)
        print(scenario)
        show_truth(truth)
        show(play_all(scenario, truth, arguments.modes, arguments))


def seeds(arguments):
    results = Results(arguments.results, arguments.forksight, arguments.modes)
    wanted = range(arguments.first, arguments.first + arguments.count)
    missing = [seed for seed in wanted if seed not in results.entries]
    progress = Progress(arguments.count, arguments.count - len(missing))

    def one(seed, scenario, truth):
        said = play_all(scenario, truth, arguments.modes, arguments)
        results.add(seed, truth, said)
        for mode, (verdict, judged, note) in said.items():
            if verdict in BAD or arguments.verbose:
                print(f"seed {seed} {mode}: {verdict}: {'; '.join(map(str, judged))} {note.splitlines()[0] if note else ''}", flush=True)
        progress.count()

    stream(missing, arguments.jobs, one)
    figures = Figures()
    for entry in results.entries.values():
        figures.add(entry["healthy"], verdicts_of(entry))
    file = "--results FILE " if arguments.results else ""
    command = (f"tests/truth/fuzz.py --forksight BIN --player BIN --modes {','.join(arguments.modes)} seeds {arguments.first} {arguments.count} "
               f"{file}--page docs/truth.md")
    print("\n".join(figures.part(command)))
    if arguments.page:
        write_part(arguments.page, "verdicts", figures.part(command))
    problems = strict_problems(results.entries, arguments) if arguments.strict else []
    return max(conclude(problems), 0 if len(results.entries) >= arguments.count else 1)


def strict_problems(entries, arguments):
    """Returns the verdicts that are wrong or harmed in two plays of a scenario, each as a line of text. The second play runs
    alone. One more line is added if too many scenarios were not judged: on a busy machine some programs do not do what the
    oracle says, and are not judged."""
    problems = []
    for seed in sorted(entries):
        if any(verdict in ("wrong", "harmed") for verdict, *_ in verdicts_of(entries[seed]).values()):
            again = play_all(*generate(seed), arguments.modes, arguments)
            problems += [f"seed {seed} {mode}: {verdict} again: {'; '.join(map(str, judged))} {note}"
                         for mode, (verdict, judged, note) in again.items() if verdict in ("wrong", "harmed")]
    unjudged = sum(1 for entry in entries.values() if any(verdict == "disagrees" for verdict, *_ in verdicts_of(entry).values()))
    if unjudged > len(entries) * MOST_UNJUDGED:
        problems.append(f"{unjudged} of {len(entries)} scenarios were not judged")
    return problems


def expectations():
    """Returns a list of (seed or file name, {mode: the worst verdict that is allowed}, scenario)."""
    found = []
    for text in SEEDS.read_text().split("# seed ")[1:]:
        head, _, scenario = text.partition("\n")
        seed, *verdicts = head.split()
        found.append((seed, dict(word.split("=") for word in verdicts), parse(scenario)))
    for path in sorted(MENDED.glob("*.scenario")):
        text = path.read_text()
        worst = "right" if MUST_BE_RIGHT in text else "silent"
        found.append((path.stem, {"run": worst, "why": worst}, parse(text)))
    return found


def check_seed(seed, expected, scenario, arguments):
    """Returns the verdicts that are worse than the recorded ones, each as a line of text."""
    truth = find_truth(scenario)
    results = play_all(scenario, truth, list(expected), arguments)
    if not truth.is_healthy() and any(step.operation in ("handle", "alarm") for step in scenario.steps):
        expected = dict.fromkeys(expected, "silent")  # forksight cannot know what a signal handler will do, so it need not report the hang
    if memory_groups.exist() and any(one.kind == "eventfd" for one in scenario.objects):
        expected = dict.fromkeys(expected, "silent")  # the kernel may write to an eventfd, so forksight need not report the hang
    return [f"seed {seed} {mode}: {verdict}, was {expected.get(mode, 'right')}: {'; '.join(map(str, judged))} {note}"
            for mode, (verdict, judged, note) in results.items() if verdict not in ORDER or is_worse(verdict, expected.get(mode, "right"))]


def is_worse(verdict, than):
    return ORDER.index(verdict) > ORDER.index(than)


def conclude(problems):
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def check(arguments):
    """Plays all recorded scenarios. If a verdict is worse than the recorded one, plays the scenario once more, alone. Plays that run at
    the same time may change a verdict, because they make the machine slow. Another reason is a descriptor that a play
    is sending. Nobody can see from outside to which pipe the descriptor belongs. So for forksight the descriptor may
    also belong to a pipe of another play."""
    known = expectations()
    if arguments.second:
        known = [one for number, one in enumerate(known) if number % 2 == 0 or not one[0].isdigit()]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        worse = [one for one, found in zip(known, pool.map(lambda one: check_seed(*one, arguments), known)) if found]
    problems = [problem for one in worse for problem in check_seed(*one, arguments)]
    print(f"{len(known)} scenarios, {len(worse)} of them played twice")
    return conclude(problems if known else ["there are no scenarios"])


def record(arguments):
    """Writes the scenarios of the first `count` seeds for which no verdict is wrong at present. They are stored as text, because a changed
    generator would make other scenarios from the same seeds."""
    found = {}

    def one(seed, scenario, truth):
        results = play_all(scenario, truth, arguments.modes, arguments)
        if all(results[mode][0] in ORDER[:4] for mode in results):
            found[seed] = " ".join([f"# seed {seed}", *(f"{mode}={results[mode][0]}" for mode in results)]) + f"\n{scenario}"

    stream(range(1, 10 * arguments.count), arguments.jobs, one, is_enough=lambda: len(found) >= arguments.count)
    chosen = [found[seed] for seed in sorted(found)][:arguments.count]
    head = "# Written by `fuzz.py record`. These are the scenarios that `fuzz.py check` plays, each with the worst verdict that is allowed.\n\n"
    SEEDS.write_text(head + "\n".join(chosen))


def says_falsely(entry, sentence):
    """True if a false sentence of the finding begins with this text."""
    return any(text.startswith(sentence) for answer, text, _ in entry.sentences if answer == "false")


def begin_of(text):
    """Returns the part of a sentence before its first number."""
    return re.split(r" [^ ]*\d", text)[0]


def wrong_entry(judged, arguments):
    """Returns (the first wrong finding, what is wrong in it); (None, None) if no finding is wrong. What is wrong is a tuple:
    (rule, which claim is false, certainty of the hang), or with --sentence (rule, start of the false sentence)."""
    for entry in judged:
        if arguments.rule and entry.rule != arguments.rule:
            continue
        false = [text for answer, text, _ in entry.sentences if answer == "false"]
        if arguments.sentence and false:
            return entry, (entry.rule, begin_of(false[0]))
        if not arguments.sentence and entry.worth == "wrong":
            return entry, (entry.rule, entry.wrong, entry.hang)
    return None, None


def reduce(arguments):
    """Prints a smaller scenario for which this mode still makes the same false claim, or reports the same false sentence."""
    scenario, truth = load(arguments.scenario)

    def wrong_in(candidate, its_truth):
        results = play_all(candidate, its_truth, [arguments.mode], arguments)
        return wrong_entry(results.get(arguments.mode, ("", [], ""))[1], arguments)

    first, kind = wrong_in(scenario, truth)
    if first is None:
        print("no wrong finding")
        return 1
    small = shrink(scenario, lambda candidate, its_truth: wrong_in(candidate, its_truth)[1] == kind)
    entry = wrong_in(small, find_truth(small))[0] or first
    said = f'a false sentence begins with "{kind[1]}"' if arguments.sentence else f"{entry.hang}/{entry.cause}, the claim about its {entry.wrong} is false"
    waits = [f"# true: {wait.thread} waits for {wait.kind} {wait.name}, {'for ever: ' + wait.cause if wait.cause else 'until ' + ', '.join(wait.open_by)}"
             for wait in find_truth(small).waits.values()]
    comments = [f"# reported by {arguments.mode}: {entry.rule} of {entry.process}, {said}", *(f"# said: {text}" for text in entry.false_sentences())]
    origin = arguments.scenario if Path(arguments.scenario).exists() else f"seed {arguments.scenario}"
    text = "\n".join([*comments, f"# from: {origin}", *waits, str(small)])
    if arguments.out:
        arguments.out.write_text(text)
    print(text)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forksight", type=Path, required=True)
    parser.add_argument("--player", type=Path, required=True)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["run", "why"])
    parser.add_argument("--jobs", type=int, default=12, help="scenarios at once: they sleep most of the time")
    parser.add_argument("--verbose", action="store_true")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("play")
    command.add_argument("scenarios", nargs="+")
    command.set_defaults(act=play)
    command = commands.add_parser("seeds")
    command.add_argument("first", type=int)
    command.add_argument("count", type=int)
    command.add_argument("--page", type=Path, help="writes the figures into this page")
    command.add_argument("--results", type=Path, help="a file to which each result is appended; seeds that are in it are not played again")
    command.add_argument("--strict", action="store_true", help="exit status 1 if a verdict is wrong in two plays, or if many scenarios are not judged")
    command.set_defaults(act=seeds)
    one = commands.add_parser("check")
    one.add_argument("--second", action="store_true", help="play only every second scenario of seeds.scenarios")
    one.set_defaults(act=check)
    command = commands.add_parser("record")
    command.add_argument("count", type=int)
    command.set_defaults(act=record)
    command = commands.add_parser("reduce")
    command.add_argument("scenario")
    command.add_argument("mode")
    command.add_argument("rule", nargs="?")
    command.add_argument("--sentence", action="store_true", help="looks for the same false sentence instead of the same false claim")
    command.add_argument("--out", type=Path, help="writes the scenario into this file")
    command.set_defaults(act=reduce)
    arguments = parser.parse_args()
    arguments.forksight, arguments.player = arguments.forksight.resolve(), arguments.player.resolve()
    become_reaper()
    stop_on_signal()
    sys.exit(arguments.act(arguments))


if __name__ == "__main__":
    main()
