"""The tour: every system on a real input, one line each with a check, and a page with the pictures.

    python -P examples/tour.py                     all stops
    python -P examples/tour.py --only pkex_shapley one stop
    python -P examples/tour.py --output tour.html  where the page goes

A stop is a file in `examples/stops` with a function `visit()` that returns a dictionary: "system", "question",
"answer", "check" (strings), "passed" (bool) and "figure" (a matplotlib figure). A failed check, or a stop that
raises, makes the command exit with 1.
"""

import argparse
import base64
import importlib.util
import io
import sys
import time
import traceback
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from tqdm.auto import tqdm

import equipoise

STOPS = Path(__file__).parent / "stops"

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A tour of equipoise</title>
<style>
:root {{ --ink: #1d2433; --soft: #5b6475; --line: #dfe3ea; --good: #00734f; --bad: #b3261e; --back: #f6f7f9; --card: #fff; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e8ebf1; --soft: #a5adbc; --line: #353c4a; --good: #58c99b; --bad: #ff8a80; --back: #14181f; --card: #1c212b; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); }}
main {{ max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }}
h1 {{ font-size: 1.6rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.1rem; margin: 0 0 .5rem; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }}
p {{ margin: .25rem 0; }}
.soft {{ color: var(--soft); }}
article {{ background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0; }}
article img {{ width: 100%; max-width: 46rem; height: auto; display: block; margin: .75rem auto 0; background: #fff;
  border-radius: .3rem; }}
.answer {{ font-weight: 600; }}
.good {{ color: var(--good); }}
.bad {{ color: var(--bad); }}
pre {{ overflow-x: auto; font-size: .85rem; }}
</style>
</head>
<body><main>
<h1>A tour of equipoise {version}</h1>
<p class="soft">{passed} of {total} checks passed in {seconds:.0f} s, {day}.</p>
{articles}
</main></body></html>
"""

ARTICLE = """<article>
<h2>{system}</h2>
<p class="soft">{question}</p>
<p class="answer">{answer}</p>
<p class="{mood}">{mark} {check}</p>
{picture}
</article>"""


def load_stop(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.visit


def visit(path: Path) -> dict[str, Any]:
    """Run one stop; a stop that raises is a failed check, and the others go on."""
    start = time.perf_counter()
    try:
        stop = load_stop(path)()
    except Exception as error:
        stop = {
            "system": path.stem,
            "question": "",
            "answer": f"{type(error).__name__}: {error}",
            "check": "the stop raised an exception",
            "passed": False,
            "trace": traceback.format_exc(),
        }
    return {**stop, "seconds": time.perf_counter() - start}


def picture(stop: dict[str, Any]) -> str:
    if "trace" in stop:
        return f"<pre>{escape(stop['trace'])}</pre>"
    buffer = io.BytesIO()
    stop["figure"].savefig(buffer, format="png", dpi=144, facecolor="white")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(stop["answer"], quote=True)}" src="data:image/png;base64,{data}">'


def page(stops: list[dict[str, Any]]) -> str:
    articles = [
        ARTICLE.format(
            **{key: escape(str(stop[key])) for key in ("system", "question", "answer", "check")},
            mood="good" if stop["passed"] else "bad",
            mark="✓" if stop["passed"] else "✗",
            picture=picture(stop),
        )
        for stop in stops
    ]
    return PAGE.format(
        version=equipoise.__version__,
        passed=sum(stop["passed"] for stop in stops),
        total=len(stops),
        seconds=sum(stop["seconds"] for stop in stops),
        day=date.today().isoformat(),
        articles="\n".join(articles),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("tour.html"))
    parser.add_argument("--only", help="part of a stop's file name")
    arguments = parser.parse_args()
    mpl.use("Agg")
    paths = [
        p for p in sorted(STOPS.glob("*.py")) if not arguments.only or arguments.only in p.stem
    ]
    if not paths:
        parser.error(
            f"--only {arguments.only!r} matches none of {[p.stem for p in STOPS.glob('*.py')]}"
        )
    stops = []
    with tqdm(paths, desc="tour", unit="stop") as bar:
        for path in bar:
            bar.set_postfix_str(path.stem)
            stop = visit(path)
            stops.append(stop)
            mark = "✓" if stop["passed"] else "✗"
            bar.write(
                f"{mark} {stop['system']} ({stop['seconds']:.1f} s): {stop['question']} {stop['answer']}"
            )
            bar.write(f"    check: {stop['check']}")
    arguments.output.write_text(page(stops), encoding="utf-8")
    failed = [stop["system"] for stop in stops if not stop["passed"]]
    print(
        f"{len(stops) - len(failed)} of {len(stops)} checks passed; pictures in {arguments.output}"
    )
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
