"""Time ours and the peer's alternately on the same work, check that the answers agree, print one line a case.

    python -P benchmarks/harness.py                 every bench_*.py beside this file
    python -P benchmarks/harness.py pkex_shapley    only benchmarks/bench_pkex_shapley.py

A benchmark is a module `bench_<subject>.py` with a function `cases()` that yields `Case`s in the form of
dictionaries: see `Case` for their keys. A case without a peer measures ours alone.
"""

import argparse
import importlib.util
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

HEADER = "| case | ours | peer | ratio | agreement |\n|---|---|---|---|---|"


class Case(TypedDict):
    """One comparison."""

    name: str
    ours: Callable[[], Any]
    peer: NotRequired[Callable[[], Any]]
    #: Largest allowed |ours - peer|, relative to the largest |peer|; default 1e-10.
    tolerance: NotRequired[float]
    #: Distance between the two answers where they aren't arrays; default the one above.
    distance: NotRequired[Callable[[Any, Any], float]]
    #: How often each side runs after one warm-up; default 5.
    repeats: NotRequired[int]
    #: False where the peer's answer is an approximation: its distance is printed, not judged.
    exact: NotRequired[bool]


def relative_distance(ours: Any, peer: Any) -> float:
    """Largest absolute difference over the peer's largest absolute value."""
    ours, peer = np.asarray(ours, dtype=float), np.asarray(peer, dtype=float)
    if ours.shape != peer.shape:
        return float("inf")
    return float(np.abs(ours - peer).max() / max(np.abs(peer).max(), np.finfo(float).tiny))


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = function()
    return time.perf_counter() - start, answer


def measure(case: Case) -> tuple[str, bool]:
    """Run one case; return its line and whether the answers agree."""
    sides = [case["ours"], *([case["peer"]] if "peer" in case else [])]
    answers = [side() for side in sides]  # warm-up: compilation, caches
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(case.get("repeats", 5)):
        for side, record in zip(sides, times, strict=True):
            record.append(seconds(side)[0])
    ours = statistics.median(times[0])
    if len(sides) == 1:
        return f"| {case['name']} | {ours:.4g} s | | | |", True
    # A ratio per pair of neighbouring runs: drift of the machine's speed cancels.
    ratio = statistics.median(p / o for o, p in zip(*times, strict=True))
    distance = case.get("distance", relative_distance)(*answers)
    judged = case.get("exact", True)
    agrees = not judged or distance <= case.get("tolerance", 1e-10)
    verdict = (
        f"{distance:.1e}"
        + ("" if agrees else " DISAGREES")
        + ("" if judged else " (approximate peer)")
    )
    peer = statistics.median(times[1])
    return f"| {case['name']} | {ours:.4g} s | {peer:.4g} s | {ratio:.3g} | {verdict} |", agrees


def load_cases(path: Path) -> Iterator[Case]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cases()


def machine() -> str:
    """The machine in a line."""
    import os

    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("subjects", nargs="*", help="names after bench_; default: all")
    parser.add_argument("--output", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    folder = Path(__file__).parent
    paths = [folder / f"bench_{subject}.py" for subject in arguments.subjects] or sorted(
        folder.glob("bench_*.py")
    )
    lines = [
        f"Machine: {machine()}. Ratio: the peer's time over ours, median over paired runs.",
        "",
    ]
    print(lines[0], flush=True)
    all_agree = True
    for path in paths:
        lines += ["", f"## {path.stem.removeprefix('bench_')}", "", HEADER]
        print(f"\n## {path.stem.removeprefix('bench_')}\n\n{HEADER}", flush=True)
        for case in load_cases(path):
            line, agrees = measure(case)
            all_agree &= agrees
            lines.append(line)
            print(line, flush=True)
    if arguments.output:
        arguments.output.write_text("# Benchmarks\n\n" + "\n".join(lines) + "\n")
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
