"""The generator against the closed forms, and the readers on small files of the right shape."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from equipoise.datasets import (
    fetch_chatbench,
    load_bansal2021,
    load_haiid,
    load_imagenet16h,
    make_human_ai_trials,
)
from equipoise.games import ai_accuracy, human_accuracy, team_accuracy


@pytest.mark.parametrize(
    "options",
    [
        {"trust": 0.4},
        {"trust": 1.3, "overlap_belief": 0.4},
        {"trust": 0.7, "recommendation": "binary"},
        {"trust": 0.7, "recommendation": "binary", "overlap_belief": 0.3},
        {"trust": 0.3, "recommendation": "binary", "n_choices": 4},
    ],
)
def test_accuracy_of_noiseless_workers(options):
    """100,000 trials against the closed forms, five standard errors."""
    data = make_human_ai_trials(
        100, 1000, 0.7, 1.1, 0.35, noise_scale=np.inf, random_state=0, **options
    )
    K = options.get("n_choices", 2)
    for column, expected in (
        (data.initial, human_accuracy(0.7, n_choices=K)),
        (data.advice, ai_accuracy(1.1, n_choices=K)),
        (data.y, team_accuracy(0.7, 1.1, 0.35, **options)),
    ):
        assert np.mean(column == data.y_true) == pytest.approx(expected, abs=5 * 0.5 / 100_000**0.5)


def test_generator_is_repeatable_and_says_the_truth():
    first, second = (
        make_human_ai_trials(
            30, 20, ai_capabilities=[0.3, 1.2], trust=0.5, trust_sd=0.6, random_state=3
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert first.X.shape == (600, 2) and len(first.worker_trust) == 30
    assert set(first.relative_capability) == {0.6, 2.4}
    assert np.log(first.worker_trust).std() == pytest.approx(0.6, abs=0.25)
    np.testing.assert_array_equal(first.initial, first.X[:, 0] > 0)
    binary = make_human_ai_trials(5, 10, recommendation="binary", random_state=0)
    assert set(binary.X[:, 1]) == {-1.0, 1.0}


def test_lapses_and_bias():
    lapsing = make_human_ai_trials(100, 100, lapse=0.9, h=2, ai_capabilities=2, random_state=0)
    assert np.mean(lapsing.y == lapsing.y_true) < 0.6
    biased = make_human_ai_trials(100, 100, bias=3.0, random_state=0)
    assert biased.y.mean() > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"h": 0.0}, "'h'"),
        ({"ai_capabilities": [1, -1]}, "ai_capabilities: got"),
        ({"overlap": 1.0}, "'overlap'"),
        ({"trust": -1}, "'trust'"),
        ({"n_choices": 4}, "recommendation: got 'probabilistic'"),
        ({"n_choices": 4, "recommendation": "binary", "bias": 1.0}, "bias: got 1.0"),
        ({"lapse": 1.0}, "'lapse'"),
    ],
)
def test_generator_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make_human_ai_trials(**options)


def haiid(folder):
    table = pd.DataFrame(
        {
            "task_name": ["art", "art", "art", "cities", "art"],
            "correct_label": ["rococo", "baroque", "baroque", "paris", "baroque"],
            "incorrect_label": ["baroque", "rococo", "rococo", "rome", "rococo"],
            "participant_id": [1, 1, 2, 2, 2],
            "response_1": [0.6, 0.2, -1.0, 0.5, 0.1],
            "advice": [0.8, -0.4, 0.4, 0.5, 0.3],
            "response_2": [0.9, -0.1, 0.2, 0.7, 0.0],
        }
    )
    path = folder / "haiid_dataset.csv"
    table.to_csv(path, index=False)
    return path, table


def test_haiid(tmp_path):
    """Answers signed by correctness become answers signed by label."""
    path, _ = haiid(tmp_path)
    data = load_haiid(path, task="art")
    assert data.y_true.tolist() == [1, 0, 0]  # rococo sorts last; the undecided row is left out
    assert data.y.tolist() == [1, 1, 0]
    assert data.initial.tolist() == [1, 0, 1] and data.advice.tolist() == [1, 1, 0]
    expected = logit([0.8, 0.4, 0.995])
    np.testing.assert_allclose(data.X[:, 0], expected)
    assert data.clipped_share == pytest.approx(1 / 6)
    assert data.groups.tolist() == [1, 1, 2]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.sha256 == digest
    assert len(load_haiid(path, sha256=digest).y) == 4
    with pytest.raises(ValueError, match=r"sha256: haiid_dataset\.csv has"):
        load_haiid(path, sha256="0" * 64)
    with pytest.raises(ValueError, match="task: got 'dance'"):
        load_haiid(path, task="dance")


def test_files_are_checked(tmp_path):
    path, table = haiid(tmp_path)
    table.drop(columns="advice").to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"lacks the columns \['advice'\]"):
        load_haiid(path)
    table.assign(advice=2.0).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"outside \[-1, 1\]"):
        load_haiid(path)
    with pytest.raises(FileNotFoundError, match="isn't a file"):
        load_haiid(tmp_path / "nothing.csv")


def test_undecided_answers_are_left_out(tmp_path):
    path, table = haiid(tmp_path)
    table.assign(response_1=[0.0, 0.2, 0.3, 0.5, 0.1]).to_csv(path, index=False)
    assert load_haiid(path, task="art").groups.tolist() == [1, 2]


def test_bansal(tmp_path):
    path = tmp_path / "decisions.csv"
    table = pd.DataFrame(
        {
            "assignmentId": ["w1", "w2", "w2"],
            "questionId": [0, 0, 1],
            "task": "beer",
            "condition": ["Conf.", "Human", "Conf."],
            "time": [3.0, 2.0, 4.0],
            "choice": [1, 0, 1],
            "y": [1, 1, 0],
            "pred": [1, 0, 0],
            "conf": [0.8, 1.0, 0.6],
        }
    )
    table.to_csv(path, index=False)
    data = load_bansal2021(path)
    np.testing.assert_allclose(
        data.X, [[0, logit(0.8)], [0, -logit(0.995)], [0, -logit(0.6)]], atol=1e-12
    )
    assert data.y.tolist() == [1, 0, 1] and data.y_true.tolist() == [1, 1, 0]
    assert data.advice.tolist() == [1, 0, 0] and data.groups.tolist() == ["w1", "w2", "w2"]
    assert data.condition.tolist() == ["Conf.", "Human", "Conf."] and data.item.tolist() == [
        0,
        0,
        1,
    ]
    assert data.initial is None and data.clipped_share == pytest.approx(1 / 3)
    words = table.replace({"choice": {0: "no", 1: "yes"}, "y": {0: "no", 1: "yes"}})
    words.assign(pred=["yes", "no", "no"]).to_csv(path, index=False)
    assert load_bansal2021(path).classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(load_bansal2021(path).y, data.y)
    both = pd.concat([table, table.assign(task="amzbook", y=0)])
    both.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"task: got None; .* \['amzbook', 'beer'\]"):
        load_bansal2021(path)
    assert load_bansal2021(path, task="amzbook").y_true.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="task: got 'wine'"):
        load_bansal2021(path, task="wine")
    for wrong, message in (
        ({"conf": 0.2}, "conf must lie"),
        ({"choice": ["A", "B", "C"]}, "allowed: two"),
        ({"choice": [1, None, 0]}, "missing in 1 rows"),
    ):
        table.assign(**wrong).to_csv(path, index=False)
        with pytest.raises(ValueError, match=message):
            load_bansal2021(path)


def test_imagenet16h(tmp_path):
    path = tmp_path / "human.csv"
    pd.DataFrame(
        {
            "participant_id": [1, 1, 2, 2],
            "image_name": ["x", "y", "x", "x"],
            "noise_level": [80, 80, 80, 125],
            "image_category": ["dog", "cat", "dog", "dog"],
            "participant_classification": ["dog", "dog", None, "cat"],
            "confidence": ["high", "low", "low", "medium"],
        }
    ).to_csv(path, index=False)
    data = load_imagenet16h(path)
    assert data.y.tolist() == ["dog", "dog", "cat"] and data.n_choices == 2
    assert data.human_alone == (1, 3)
    assert data.item.tolist() == ["x/80", "y/80", "x/125"]
    noisy = load_imagenet16h(path, noise_level=125)
    assert noisy.human_alone == (0, 1) and noisy.n_choices == 2
    with pytest.raises(ValueError, match=r"noise_level: got 7; the file has \[80, 125\]"):
        load_imagenet16h(path, noise_level=7)


def test_chatbench(tmp_path):
    path = tmp_path / "chatbench.csv"
    rows = [  # correct, userAI, answerFirst, phase, worker, question
        (1, 0, 0, 1, "a", "q1"),
        (0, 0, 0, 2, "a", "q2"),
        (1, 1, 1, 2, "a", "q2"),
        (1, 0, 0, 2, "a", "q3"),
        (0, 1, 1, 2, "a", "q3"),
        (0, 0, 0, 1, "b", "q1"),
        (1, 1, 0, 2, "b", "q2"),
        (0, 0, 0, 2, "c", "q4"),
        (0, 1, 1, 2, "c", "q4"),
    ]
    columns = ["correct", "userAI", "userAI_answerFirst", "phase", "worker_id", "questionID"]
    table = pd.DataFrame(rows, columns=columns).assign(
        userAI_allowCopy=0, question_position=1, model="big", confidence=None
    )
    table.to_csv(path, index=False)
    data = fetch_chatbench(data_home=tmp_path)
    assert data.human_alone == (2, 5) and data.n_choices == 4
    assert data.alone.to_numpy().tolist() == [[1, 1, 2], [2, 1, 3]]
    assert data.assisted[["answer_first", "right", "n"]].to_numpy().tolist() == [
        [0, 1, 1],
        [1, 1, 3],
    ]
    assert data.paired[["correct_alone", "correct_assisted"]].to_numpy().tolist() == [
        [0, 1],
        [1, 0],
        [0, 0],
    ]
    assert data.corrected == 0.5 and data.misled == 1.0
    for wrong, message in (
        (table.assign(correct=2), "'correct' must hold 0 and 1"),
        (table.assign(phase=3), "'phase' must hold 1 and 2"),
        (pd.concat([table, table.iloc[:1]]), "1 rows repeat a worker's answer"),
        (table.drop(columns="userAI_allowCopy"), "lacks the columns"),
    ):
        wrong.to_csv(path, index=False)
        with pytest.raises(ValueError, match=message):
            fetch_chatbench(path)
