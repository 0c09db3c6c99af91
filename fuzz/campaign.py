"""A campaign: cases grouped by program run in a worker process; a case that does not end is found and left behind.

The worker prints one JSON line before and one after every case. When a case takes longer than its limit, or the worker
dies, the case is a finding, and a new worker goes on with the next one.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Any

from fuzz.cases import Case, drawn, families
from fuzz.minimise import minimised
from fuzz.snippets import SNIPPETS
from fuzz.verdicts import CRASH, FINDINGS, HANG, MEANING, UNJUDGED, WARNED, Verdict

_COMPILING = 300.0  # seconds for the first case of a program, which compiles it
_RUNNING = 60.0  # seconds for every other case
_SCRIPTS = 1  # printed for one program and class


@dataclass(frozen=True)
class Result:
    """A case, its verdict, the seconds it took and, for a finding, a script."""

    case: Case
    verdict: Verdict
    seconds: float
    script: str = ""


def ordered(seed: int, indices: range | list[int], only: tuple[str, ...] = ()) -> list[Case]:
    """Cases that share a program stand together."""
    cases = [drawn(seed, i, only) for i in indices]
    return sorted(cases, key=lambda c: (c.program, c.index))


def tried(seed: int, case: Case) -> Verdict:
    """The verdict on a case; a mistake of the harness is no verdict on carom."""
    try:
        return families(seed)[case.family].run(case.numbers)
    except Exception:
        return Verdict(UNJUDGED, f"the harness failed: {traceback.format_exc(limit=-2)}")


def work(seed: int, indices: list[int], only: tuple[str, ...], scripts: bool) -> None:
    """The worker: run these cases in this order and print what became of them."""
    printed: Counter[tuple[str, str]] = Counter()
    for index in indices:
        case = drawn(seed, index, only)
        say(start=index)
        begun = time.perf_counter()
        verdict = tried(seed, case)
        seconds, script = time.perf_counter() - begun, ""
        if scripts and verdict.kind in FINDINGS and printed[case.program, verdict.kind] < _SCRIPTS:
            printed[case.program, verdict.kind] += 1
            say(shrink=index)
            script = shrunk(seed, case, verdict)
        say(done=index, kind=verdict.kind, detail=verdict.detail, seconds=seconds, script=script)


def shrunk(seed: int, case: Case, verdict: Verdict) -> str:
    """The script of a finding, with simpler numbers where they fail as well."""
    family = families(seed)[case.family]
    try:
        return family.script(minimised(family, case.numbers, verdict))
    except Exception:
        return f"# no script: {traceback.format_exc(limit=-1)}"


def say(**line: Any) -> None:
    """One line to the campaign."""
    print(json.dumps(line), flush=True)


class Worker:
    """A process that works through a list of cases."""

    def __init__(self, seed: int, indices: list[int], only: tuple[str, ...]):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz", "--worker", "--seed", str(seed), "--only", ",".join(only)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(indices))
        self.process.stdin.close()
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        """Pass on what the worker says, and that it ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def heard(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None when the worker ended; `queue.Empty` when it says nothing for so long."""
        line = self.lines.get(timeout=seconds)
        if line is None:
            return None
        return json.loads(line) if line.startswith("{") else {}

    def end(self) -> int:
        """End the process, wherever it is."""
        self.process.kill()
        return self.process.wait()


def campaign(seed: int, count: int, only: tuple[str, ...] = ()) -> list[Result]:
    """Run cases 0 to count - 1 and print findings as they come."""
    cases = {case.index: case for case in ordered(seed, range(count), only)}
    left, results = list(cases), []
    while left:
        worker = Worker(seed, left, only)
        current, limit, seen = None, _COMPILING, set()
        while True:
            try:
                line = worker.heard(limit)
            except queue.Empty:
                worker.end()
                verdict = Verdict(HANG, f"no end after {limit:g} s")
                break
            if line is None:
                code = worker.end()
                verdict = Verdict(CRASH, f"the process ended with code {code}")
                break
            if "start" in line:
                current, program = line["start"], cases[line["start"]].program
                limit = _RUNNING if program in seen or program in SNIPPETS else _COMPILING
                seen.add(program)
            elif "done" in line:
                told = Verdict(line["kind"], line["detail"])
                results.append(Result(cases[line["done"]], told, line["seconds"], line["script"]))
                left.remove(line["done"])
                show(results[-1], len(results), count)
                current = None
        if current is None:
            if left and verdict.kind == CRASH:
                msg = f"the worker ended before its first case: {verdict.detail}"
                raise RuntimeError(msg)
            continue
        case = cases[current]
        results.append(Result(case, verdict, limit, families(seed)[case.family].script(case.numbers)))
        left.remove(current)
        show(results[-1], len(results), count)
    return results


def show(result: Result, number: int, count: int) -> None:
    """Print a finding at once, and now and then how far the campaign is."""
    if result.verdict.kind in FINDINGS:
        case = result.case
        print(f"\n{result.verdict.kind} case {case.index} ({case.program}): {result.verdict.detail}", flush=True)
        if result.script:
            print("\n".join(f"    {line}" for line in result.script.splitlines()), flush=True)
    if number % 100 == 0:
        print(f"{number} of {count} cases", flush=True)


def summary(results: list[Result]) -> str:
    """Counts by class, by family and what the programs cost."""
    kinds = Counter(r.verdict.kind for r in results)
    lines = [f"{kinds[kind]:6d} {kind}: {MEANING[kind]}" for kind in MEANING]
    table = Counter((r.case.family, r.verdict.kind) for r in results)
    for name in sorted({r.case.family for r in results}):
        counts = ", ".join(f"{table[name, kind]} {kind}" for kind in MEANING if table[name, kind])
        spent = sorted(r.seconds for r in results if r.case.family == name)
        lines.append(f"  {name}: {counts}; {sum(spent):.1f} s, median case {1e3 * spent[len(spent) // 2]:.0f} ms")
    programs = {r.case.program for r in results}
    total = sum(r.seconds for r in results)
    lines.append(f"{len(results)} cases, {len(programs)} programs, {total:.0f} s in cases")
    harness = [r for r in results if r.verdict.kind == UNJUDGED and r.verdict.detail.startswith("the harness")]
    lines += [f"case {r.case.index}: {r.verdict.detail}" for r in harness]
    lines += [f"warned, case {r.case.index} ({r.case.program}): {r.verdict.detail}" for r in results if is_warned(r)]
    return "\n".join(lines)


def is_warned(result: Result) -> bool:
    """Whether the numbers were off and carom said so."""
    return result.verdict.kind == WARNED


def failed(results: list[Result]) -> bool:
    """Whether anything was found."""
    return any(r.verdict.kind in FINDINGS for r in results)
