"""check_schema.py SCHEMA PROGRAM: the reports that PROGRAM prints must match the schema, and the schema must refuse damaged
reports."""
import copy
import json
import subprocess
import sys

import jsonschema


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    output = subprocess.run([sys.argv[2]], stdout=subprocess.PIPE, check=True).stdout
    reports = [json.loads(text.decode("utf-8")) for text in output.split(b"\0") if text]
    failures = []
    for number, report in enumerate(reports):
        for error in validator.iter_errors(report):
            failures.append("report %d: %s: %s" % (number, "/".join(map(str, error.absolute_path)), error.message))

    rules = {finding["rule"] for report in reports for finding in report["findings"]}
    if len(reports) < 9 or len(rules) < 5:
        failures.append("too little was checked: %d reports, rules %s" % (len(reports), sorted(rules)))

    enders = {ender["kind"] for report in reports for process in report["processes"] for wait in process["waits"]
              for ender in wait["could_end"] or []}
    if enders != {"process", "timer", "signal", "anybody", "continue"}:
        failures.append("the reports contain other kinds of enders than expected: %s" % sorted(enders))

    # A schema that accepts every report would pass the checks above. So the schema must refuse damaged reports.
    good = next(report for report in reports if report["findings"])
    spoilt = []
    for spoil in (
        lambda r: r.pop("limits"),
        lambda r: r.update(schema="forksight-report/1"),
        lambda r: r.update(extra=1),
        lambda r: r["findings"][0].update(cause="sure"),
        lambda r: r["findings"][0].update(fingerprint="0x12"),
        lambda r: r["findings"][0]["stack"].append({"function": "f"}),
        lambda r: r["processes"][0].update(pid="1"),
    ):
        report = copy.deepcopy(good)
        spoil(report)
        spoilt.append(report)
    waiting = next(report for report in reports if any(wait["could_end"] for process in report["processes"] for wait in process["waits"]))
    for spoil in (
        lambda ender: ender.update(kind="nobody"),
        lambda ender: ender.pop("via"),
        lambda ender: ender.update(in_s=1),
    ):
        report = copy.deepcopy(waiting)
        spoil(next(ender for process in report["processes"] for wait in process["waits"] for ender in wait["could_end"] or []
                   if ender["kind"] == "process"))
        spoilt.append(report)
    for number, report in enumerate(spoilt):
        if validator.is_valid(report):
            failures.append("the schema accepts damaged report %d" % number)

    for failure in failures:
        print(failure)
    print("%d reports, %d findings" % (len(reports), sum(len(r["findings"]) for r in reports)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
