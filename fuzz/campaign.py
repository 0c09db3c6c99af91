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
_QUICK = (*SNIPPETS, "runaway")  # families whose programs take no time to compile
_AT_ONCE = 400  # cases of one worker: compiled programs are never freed
_SCRIPTS = 1  # printed for one program and class


@dataclass(frozen=True)
class Result:
    """A case, its verdict and the seconds it took."""

    case: Case
    verdict: Verdict
    seconds: float


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


def work(seed: int, indices: list[int], only: tuple[str, ...]) -> None:
    """The worker: run these cases in this order and print what became of them."""
    printed: Counter[tuple[str, str]] = Counter()
    for index in indices:
        case = drawn(seed, index, only)
        say(start=index)
        begun = time.perf_counter()
        verdict = tried(seed, case)
        say(done=index, kind=verdict.kind, detail=verdict.detail, seconds=time.perf_counter() - begun)
        if verdict.kind in FINDINGS and printed[case.program, verdict.kind] < _SCRIPTS:
            printed[case.program, verdict.kind] += 1
            say(script=shrunk(seed, case, verdict))


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
        """The exit code; a process that does not end by itself is ended."""
        try:
            return self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Campaign:
    """Cases 0 to count - 1 of a seed, and what became of them so far."""

    def __init__(self, seed: int, count: int, only: tuple[str, ...] = ()):
        self.seed, self.only = seed, only
        self.cases = {case.index: case for case in ordered(seed, range(count), only)}
        self.left, self.results = list(self.cases), []
        self.current: int | None = None

    def run(self) -> list[Result]:
        """Worker after worker until no case is left."""
        while self.left:
            before = len(self.left)
            worker = Worker(self.seed, self.left[:_AT_ONCE], self.only)
            verdict = self.follow(worker)
            if self.current is not None:
                self.add(self.current, verdict, 0.0)
                print(indented(families(self.seed)[self.results[-1].case.family].script(self.results[-1].case.numbers)))
            elif len(self.left) == before:
                msg = f"the worker ended before its first case: {verdict.detail}"
                raise RuntimeError(msg)
        return self.results

    def follow(self, worker: Worker) -> Verdict:
        """Listen to a worker until it ends or hangs, and what that says about the case it was in."""
        self.current, limit, seen = None, _COMPILING, set()
        while True:
            try:
                line = worker.heard(limit)
            except queue.Empty:
                worker.end()
                return Verdict(HANG, f"no end after {limit:g} s")
            if line is None:
                return Verdict(CRASH, f"the process ended with code {worker.end()}")
            if "start" in line:
                self.current, program = line["start"], self.cases[line["start"]].program
                quick = program in seen or self.cases[self.current].family in _QUICK
                limit = _RUNNING if quick else _COMPILING
                seen.add(program)
            elif "done" in line:
                self.add(line["done"], Verdict(line["kind"], line["detail"]), line["seconds"])
            elif "script" in line:
                print(indented(line["script"]), flush=True)

    def add(self, index: int, verdict: Verdict, seconds: float) -> None:
        """Note a result; print a finding at once, and now and then how far the campaign is."""
        case, self.current = self.cases[index], None
        self.results.append(Result(case, verdict, seconds))
        self.left.remove(index)
        if verdict.kind in FINDINGS:
            print(f"\n{verdict.kind} case {index} ({case.program}): {verdict.detail}", flush=True)
        if len(self.results) % 100 == 0:
            print(f"\n{len(self.results)} of {len(self.cases)} cases", flush=True)


def indented(script: str) -> str:
    """A script below its finding."""
    return "\n".join(f"    {line}" for line in script.splitlines())


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
