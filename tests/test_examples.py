"""The tour's stops pass, the gallery's scripts run, and the benchmark harness judges answers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
STOPS = sorted((ROOT / "examples" / "stops").glob("*.py"))
GALLERY = sorted((ROOT / "examples").glob("*/plot_*.py"))
STUDIES = sorted((ROOT / "examples" / "studies").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tour():
    return load(ROOT / "examples" / "tour.py")


@pytest.mark.parametrize("path", STOPS, ids=lambda path: path.stem)
def test_stop_passes(path, tour):
    mpl.use("Agg")
    stop = tour.visit(path)
    assert stop["passed"], stop.get("trace", stop["check"])
    assert stop["question"].endswith("?")
    assert any(letter.isdigit() for letter in stop["answer"]), "an answer holds a number"
    assert tour.picture(stop).startswith('<img alt="')


def test_tour_page_is_self_contained_and_escapes(tour):
    from matplotlib.figure import Figure

    stop = {
        "system": "<b>Name</b>",
        "question": "Is 1 < 2?",
        "answer": 'yes, by "1"',
        "check": "counted",
        "passed": True,
        "figure": Figure(),
        "seconds": 0.1,
    }
    failed = tour.visit(ROOT / "examples" / "stops" / "no_such_stop.py")
    html = tour.page([stop, {**failed, "seconds": 0.0}])
    assert "&lt;b&gt;Name" in html
    assert "1 of 2 checks passed" in html
    assert "FileNotFoundError" in html
    assert 'src="data:image/png;base64,' in html
    assert "http://" not in html
    assert "https://" not in html


def test_tour_fails_when_a_stop_fails(tour, tmp_path, monkeypatch):
    stops = tmp_path / "stops"
    stops.mkdir()
    (stops / "01_broken.py").write_text("def visit():\n    raise ValueError('broken on purpose')\n")
    monkeypatch.setattr(tour, "STOPS", stops)
    monkeypatch.setattr(sys, "argv", ["tour.py", "--output", str(tmp_path / "tour.html")])
    assert tour.main() == 1
    assert "broken on purpose" in (tmp_path / "tour.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_script_runs(path, tmp_path):
    run_script(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_study_runs_quickly(path, tmp_path):
    run_script(path, tmp_path, "--quick", "--output", str(tmp_path / "study"))
    assert any((tmp_path / "study").iterdir())


def run_script(path, folder, *arguments):
    result = subprocess.run(
        [sys.executable, "-P", path, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "EQUIPOISE_STUDY_DATA": study_data()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]


def study_data():
    return os.environ.get("EQUIPOISE_STUDY_DATA", str(ROOT.parent / "shared" / "data"))


def test_harness_judges_the_answers():
    harness = load(ROOT / "benchmarks" / "harness.py")
    same = {"name": "same", "ours": lambda: np.ones(3), "peer": lambda: np.ones(3), "repeats": 1}
    line, agrees = harness.measure(same)
    assert agrees
    assert line.startswith("| same | ")
    assert line.count("|") == 6
    line, agrees = harness.measure({**same, "peer": lambda: np.ones(3) + 1e-6})
    assert not agrees
    assert "DISAGREES" in line
    assert harness.measure({**same, "peer": lambda: np.ones(3) * 1.1, "exact": False})[1]
    assert harness.measure({"name": "alone", "ours": lambda: None, "repeats": 1})[1]
    assert harness.relative_distance([1.0, 2.0], [1.0]) == np.inf


def test_harness_measures_the_ratio():
    import time

    harness = load(ROOT / "benchmarks" / "harness.py")
    case = {
        "name": "naps",
        "ours": lambda: time.sleep(0.01),
        "peer": lambda: time.sleep(0.03),
        "distance": lambda ours, peer: 0.0,
    }
    line, _ = harness.measure(case)
    # Sleeping threads wake late on a busy machine, so only the order of magnitude is held.
    assert 1.5 < float(line.split("|")[4]) < 6


def test_every_benchmark_yields_cases():
    for path in (ROOT / "benchmarks").glob("bench_*.py"):
        assert callable(load(path).cases), path
