"""`python -m fuzz --count 200 --seed 0`; `--case 17` repeats one case and prints its script."""

from __future__ import annotations

import argparse
import json
import sys

from fuzz.campaign import Campaign, failed, summary, tried, work
from fuzz.cases import SHARE, drawn, families


def main() -> int:
    """Run a campaign, one case of it, or a part of it as its worker."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help=f"families, with commas between: {', '.join(SHARE)}")
    parser.add_argument("--case", type=int, help="repeat this case alone")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    only = tuple(name for name in given.only.split(",") if name)
    if unknown := set(only) - set(SHARE):
        parser.error(f"no such family: {', '.join(unknown)}")
    if given.worker:
        work(given.seed, json.load(sys.stdin), only)
        return 0
    if given.case is not None:
        case = drawn(given.seed, given.case, only)
        verdict = tried(given.seed, case)
        print(f"{families(given.seed)[case.family].script(case.numbers)}\n\n# {verdict.kind}: {verdict.detail}")
        return 0
    results = Campaign(given.seed, given.count, only).run()
    print(f"\n{summary(results)}")
    return int(failed(results))


if __name__ == "__main__":
    sys.exit(main())
