"""Clients against a server in this process, a tiny random transformer, and a process that dies."""

import copy
import json
import logging
import pickle
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sklearn.base import BaseEstimator, clone

from equipoise.language_models import (
    CachedModel,
    LanguageModel,
    LanguageModelError,
    OpenAICompatibleModel,
    ScriptedModel,
    TransformersModel,
)

KEY = "sk-very-secret-0123456789"


def completion(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})


class StubServer(ThreadingHTTPServer):
    """Hands out `replies` in order, then echoes the prompt; records what it was sent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StubHandler)
        self.replies, self.requests, self.times = [], [], []
        self.under_way = self.most_under_way = 0
        self.delay = 0.0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class StubHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.requests.append((self.path, dict(self.headers), body))
            server.times.append(time.monotonic())
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
            reply = server.replies.pop(0) if server.replies else None
        if server.delay:
            time.sleep(server.delay)
        status, headers, text = reply or (200, {}, completion(body["messages"][0]["content"]))
        with server.lock:
            server.under_way -= 1
        if status == "hang up":
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    stub = StubServer()
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stub
    stub.shutdown()
    thread.join()
    stub.server_close()


def client(server, **options):
    return OpenAICompatibleModel(
        server.url, "tiny", **{"api_key": KEY, "backoff": 0.001, "timeout": 5.0, **options}
    )


# The server's client


def test_request_says_what_was_asked(server):
    answers = client(server).complete(
        ["one", "zwei ÷"], max_tokens=7, temperature=0.5, seed=3, stop=["\n", "END"]
    )
    assert answers == ["one", "zwei ÷"]
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "one"}],
        "max_tokens": 7,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["\n", "END"],
    }


def test_fields_that_were_not_asked_are_not_sent(server):
    client(server, max_tokens_field="max_completion_tokens").complete(["one"])
    body = server.requests[0][2]
    assert set(body) == {"model", "messages", "max_completion_tokens", "temperature"}


def test_no_prompts_ask_nothing(server):
    assert client(server).complete([]) == []
    assert server.requests == []


def test_stop_is_cut_also_where_the_server_does_not_heed_it(server):
    assert client(server).complete(["yes. no. maybe"], stop=["maybe", "."]) == ["yes"]


@pytest.mark.parametrize(
    "failure",
    [
        (503, {}, "overloaded"),
        (500, {}, ""),
        (429, {}, "slow down"),
        ("hang up", {}, ""),
        (200, {}, "<html>no JSON</html>"),
        (200, {}, '{"choices": []}'),
        (200, {}, '[{"choices": 1}]'),
    ],
)
def test_fails_once_and_then_answers(server, failure):
    server.replies = [failure]
    assert client(server).complete(["still there?"]) == ["still there?"]
    assert len(server.requests) == 2


def test_gives_up_after_the_last_retry_and_says_why(server):
    server.replies = [(503, {}, "overloaded")] * 10
    with pytest.raises(
        LanguageModelError, match=r"no answer in 3 tries; the last: HTTP 503.*overl"
    ):
        client(server, max_retries=2).complete(["x"])
    assert len(server.requests) == 3


@pytest.mark.parametrize("body", ["<html>", '{"choices": [{"message": {"content": null}}]}'])
def test_what_is_no_completion_is_quoted(server, body):
    server.replies = [(200, {}, body)] * 2
    with pytest.raises(LanguageModelError, match=r"chat completion.*(html|null)"):
        client(server, max_retries=1).complete(["x"])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_refusals_are_not_retried(server, status):
    server.replies = [(status, {}, f"no, not with key {KEY}")]
    with pytest.raises(LanguageModelError, match=f"refuses: HTTP {status}") as caught:
        client(server).complete(["x"])
    assert len(server.requests) == 1
    assert KEY not in str(caught.value)


def test_redirects_do_not_carry_the_key_away(server):
    server.replies = [(302, {"Location": server.url + "/elsewhere"}, "")]
    with pytest.raises(LanguageModelError, match="HTTP 302"):
        client(server).complete(["x"])
    assert len(server.requests) == 1


def test_retry_after_in_seconds_is_honoured(server):
    server.replies = [(429, {"Retry-After": "0.4"}, "")]
    assert client(server).complete(["x"]) == ["x"]
    assert server.times[1] - server.times[0] >= 0.4


def test_retry_after_as_a_date_is_honoured(server):
    # HTTP dates have whole seconds, so 2 s ahead means at least 1 s of waiting.
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    server.replies = [(503, {"Retry-After": date}, "")]
    assert client(server).complete(["x"]) == ["x"]
    assert server.times[1] - server.times[0] >= 0.9


def test_unreadable_retry_after_falls_back_to_backoff(server):
    server.replies = [(429, {"Retry-After": "soon"}, "")]
    assert client(server).complete(["x"]) == ["x"]


def test_a_wait_over_the_limit_is_an_error(server):
    server.replies = [(429, {"Retry-After": "3600"}, "quota")]
    with pytest.raises(LanguageModelError, match=r"asks to wait 3600 s, more than max_wait=120"):
        client(server).complete(["x"])


def test_backoff_doubles(server):
    server.replies = [(503, {}, "")] * 3
    client(server, backoff=0.1).complete(["x"])
    waits = [b - a for a, b in zip(server.times[:-1], server.times[1:], strict=True)]
    # Each wait is between half and all of .1, .2, .4; the upper side has room for a slow machine.
    for wait, longest in zip(waits, (0.1, 0.2, 0.4), strict=True):
        assert longest / 2 <= wait < longest + 0.3


def test_timeout_is_an_error_that_names_it(server):
    server.delay = 0.5
    with pytest.raises(LanguageModelError, match=r"no answer in 2 tries; the last: .*[Tt]ime"):
        client(server, timeout=0.05, max_retries=1).complete(["x"])


def test_no_server_is_an_error_that_names_it():
    nobody = OpenAICompatibleModel(
        "http://127.0.0.1:9/v1", "tiny", api_key=KEY, max_retries=1, backoff=0.0
    )
    with pytest.raises(LanguageModelError, match=r"127\.0\.0\.1:9/v1 tiny gave no answer"):
        nobody.complete(["x"])


def test_threads_ask_at_once_and_keep_the_order(server):
    server.delay = 0.05
    prompts = [f"prompt {i}" for i in range(12)]
    assert client(server, n_threads=6).complete(prompts) == prompts
    assert 2 <= server.most_under_way <= 6
    server.most_under_way = 0
    client(server).complete(prompts[:3])
    assert server.most_under_way == 1


def test_first_error_stops_the_rest(server):
    server.replies = [(400, {}, "no")]
    server.delay = 0.02
    with pytest.raises(LanguageModelError, match="refuses"):
        client(server).complete([f"prompt {i}" for i in range(50)])
    assert len(server.requests) <= 3


def test_key_is_not_shown_logged_or_pickled(server, caplog, monkeypatch):
    server.replies = [(503, {}, f"key {KEY}"), (503, {}, f"key {KEY}")]
    model = client(server, max_retries=1)
    with caplog.at_level(logging.DEBUG), pytest.raises(LanguageModelError) as caught:
        model.complete(["x"])
    assert "again in" in caplog.text
    assert KEY not in caplog.text
    assert KEY not in str(caught.value)
    assert KEY not in repr(model)
    assert KEY not in str(model)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    stored = pickle.dumps(model)
    assert KEY.encode() not in stored
    pickle.loads(stored).complete(["x"])
    assert server.requests[-1][1]["Authorization"] == "Bearer sk-from-the-environment"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        pickle.loads(stored)


class Asker(BaseEstimator):
    def __init__(self, model):
        self.model = model


def test_copies_and_clones_share_the_client(server):
    model = client(server)
    for shared in (copy.copy(model), copy.deepcopy(model), clone(Asker(model)).model):
        assert shared is model
    assert clone(Asker(model)).model.complete(["x"]) == ["x"]


def test_key_comes_from_the_environment_or_is_not_needed(server, monkeypatch):
    with pytest.raises(ValueError, match=r"no key for .*OTHER_KEY"):
        OpenAICompatibleModel(server.url, "tiny", api_key_variable="OTHER_KEY")
    monkeypatch.setenv("OTHER_KEY", "k")
    OpenAICompatibleModel(server.url, "tiny", api_key_variable="OTHER_KEY").complete(["x"])
    assert server.requests[-1][1]["Authorization"] == "Bearer k"
    OpenAICompatibleModel(server.url, "tiny", api_key_variable=None).complete(["x"])
    assert "Authorization" not in server.requests[-1][1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": "localhost:8000/v1"}, "base_url"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"base_url": "http://user:pass@localhost/v1"}, "base_url"),
        ({"base_url": "http://localhost/v1?key=1"}, "base_url"),
        ({"model": ""}, "model"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
        ({"backoff": -1.0}, "backoff"),
        ({"max_wait": -1.0}, "max_wait"),
        ({"n_threads": 0}, "n_threads"),
        ({"max_tokens_field": "tokens"}, "max_tokens_field"),
    ],
)
def test_wrong_configuration_is_named(wrong, message):
    options = {"base_url": "http://localhost/v1", "model": "tiny", "api_key": KEY, **wrong}
    with pytest.raises(ValueError, match=message) as caught:
        OpenAICompatibleModel(**options)
    assert "pass@" not in str(caught.value)


# Every client


def scripted(tmp_path):
    return ScriptedModel(lambda prompt: prompt)


def cached(tmp_path):
    return CachedModel(scripted(tmp_path), tmp_path / "cache.sqlite", identity="echo")


def remote(tmp_path):
    return OpenAICompatibleModel("http://localhost/v1", "tiny", api_key=KEY)


def local(tmp_path):
    return TransformersModel("nowhere")


@pytest.mark.parametrize("make", [scripted, cached, remote, local])
def test_clients_check_what_they_are_asked(make, tmp_path):
    model = make(tmp_path)
    assert isinstance(model, LanguageModel)
    for wrong, error, message in [
        ({"prompts": "one string"}, TypeError, "prompts='one string'"),
        ({"prompts": [1]}, TypeError, "prompts"),
        ({"max_tokens": 0}, ValueError, "max_tokens=0"),
        ({"max_tokens": 1.5}, ValueError, "max_tokens=1.5"),
        ({"temperature": -0.1}, ValueError, "temperature=-0.1"),
        ({"temperature": float("nan")}, ValueError, "temperature=nan"),
        ({"temperature": "hot"}, ValueError, "temperature='hot'"),
        ({"stop": ""}, ValueError, "stop=''"),
        ({"stop": ["a", 1]}, ValueError, "stop"),
    ]:
        asked = {"prompts": ["x"], **wrong}
        with pytest.raises(error, match=message):
            model.complete(**asked)


# The script


def test_script_in_order_by_prompt_or_by_function():
    ordered = ScriptedModel(["a", "b", "c"])
    assert ordered.complete(["1", "2"]) == ["a", "b"]
    assert ordered.complete(["3"]) == ["c"]
    with pytest.raises(LanguageModelError, match="3 answers, and prompt 4 came: '4'"):
        ordered.complete(["4"])
    by_prompt = ScriptedModel({"x": "1"})
    assert by_prompt.complete(["x", "x"]) == ["1", "1"]
    with pytest.raises(LanguageModelError, match="no answer to the prompt 'y'"):
        by_prompt.complete(["y"])
    assert ScriptedModel(str.upper).complete(["x"]) == ["X"]
    with pytest.raises(TypeError, match="script"):
        ScriptedModel("one text")


def test_script_records_and_stops():
    model = ScriptedModel(lambda prompt: "yes. no")
    assert (
        model.complete(["a", "b"], temperature=0.5, seed=1, max_tokens=9, stop=".") == ["yes"] * 2
    )
    assert model.prompts == ["a", "b"]
    assert (
        model.parameters
        == [
            {"max_tokens": 9, "temperature": 0.5, "seed": 1, "stop": "."},
        ]
        * 2
    )
    again = pickle.loads(pickle.dumps(ScriptedModel({"x": "1"})))
    assert again.complete(["x"]) == ["1"]
    assert "1 prompts" in repr(again)


# The cache


class Sampler:
    """Counts what it is asked, and never answers twice alike."""

    identity = "sampler"

    def __init__(self, fails_at=None):
        self.asked, self.fails_at = [], fails_at
        self.lock = threading.Lock()

    def complete(self, prompts, *, max_tokens=256, temperature=0.0, seed=None, stop=None):
        with self.lock:
            self.asked.append(list(prompts))
            if self.fails_at is not None and len(self.asked) > self.fails_at:
                raise LanguageModelError("out of order")
            return [f"{p} #{len(self.asked)}.{i}" for i, p in enumerate(prompts)]


def test_cache_asks_once_and_outlives_the_object(tmp_path):
    path, inner = tmp_path / "deep" / "cache.sqlite", Sampler()
    first = CachedModel(inner, path).complete(["a", "b", "a"])
    assert first == ["a #1.0", "b #1.1", "a #1.0"]
    again = CachedModel(Sampler(fails_at=0), path)
    assert again.complete(["b", "a"]) == ["b #1.1", "a #1.0"]
    assert inner.asked == [["a", "b"]]


@pytest.mark.parametrize(
    "change", [{"max_tokens": 9}, {"temperature": 0.5}, {"seed": 1}, {"stop": ["."]}]
)
def test_every_parameter_is_part_of_the_key(tmp_path, change):
    inner = Sampler()
    model = CachedModel(inner, tmp_path / "c.sqlite")
    model.complete(["a"])
    model.complete(["a"], **change)
    model.complete(["a"], **change)
    assert len(inner.asked) == 2


def test_identity_is_part_of_the_key(tmp_path):
    path, one, two = tmp_path / "c.sqlite", Sampler(), Sampler()
    CachedModel(one, path, identity="one").complete(["a"])
    CachedModel(two, path, identity="two").complete(["a"])
    CachedModel(two, path, identity="one").complete(["a"])
    assert (one.asked, two.asked) == ([["a"]], [["a"]])
    with pytest.raises(ValueError, match="identity"):
        CachedModel(ScriptedModel([]), path)


def test_samples_of_one_prompt_stay_apart(tmp_path):
    inner = Sampler()
    model = CachedModel(inner, tmp_path / "c.sqlite")
    samples = model.complete(["a"] * 3, temperature=1.0)
    assert len(set(samples)) == 3
    assert model.complete(["a"] * 3, temperature=1.0) == samples
    assert model.complete(["a"] * 4, temperature=1.0)[:3] == samples
    assert inner.asked == [["a"] * 3, ["a"]]


def test_what_was_answered_before_a_failure_is_kept(tmp_path):
    path, prompts = tmp_path / "c.sqlite", [f"p{i}" for i in range(10)]
    with pytest.raises(LanguageModelError, match="out of order"):
        CachedModel(Sampler(fails_at=3), path, batch_size=2).complete(prompts)
    rest = Sampler()
    CachedModel(rest, path, batch_size=100).complete(prompts)
    assert rest.asked == [prompts[6:]]


def test_cache_survives_a_kill(tmp_path):
    path = tmp_path / "c.sqlite"
    script = textwrap.dedent(f"""
        import os, signal
        from equipoise.language_models import CachedModel, ScriptedModel

        def answer(prompt):
            if prompt == "p7":
                os.kill(os.getpid(), signal.SIGKILL)
            return prompt

        model = CachedModel(ScriptedModel(answer), {str(path)!r}, identity="echo", batch_size=2)
        model.complete([f"p{{i}}" for i in range(10)])
    """)
    assert subprocess.run([sys.executable, "-P", "-c", script], check=False).returncode == -9
    inner = ScriptedModel(lambda prompt: prompt)
    CachedModel(inner, path, identity="echo").complete([f"p{i}" for i in range(10)])
    assert inner.prompts == ["p6", "p7", "p8", "p9"]


def test_threads_ask_no_prompt_twice(tmp_path):
    class Slow(Sampler):
        def complete(self, prompts, **options):
            time.sleep(0.02)
            return super().complete(prompts, **options)

    inner = Slow()
    model = CachedModel(inner, tmp_path / "c.sqlite", batch_size=3)
    prompts = [f"p{i}" for i in range(12)]
    answers = [None] * 6

    def work(k):
        mine = prompts[k:] + prompts[:k]
        answers[k] = dict(zip(mine, model.complete(mine), strict=True))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert all(answer == answers[0] for answer in answers)
    assert sorted(prompt for batch in inner.asked for prompt in batch) == sorted(prompts)


def test_failure_in_one_thread_leaves_the_prompts_to_another(tmp_path):
    started = threading.Event()

    class FailsFirst(Sampler):
        def complete(self, prompts, **options):
            if not started.is_set():
                started.set()
                time.sleep(0.1)
                raise LanguageModelError("first one fails")
            return super().complete(prompts, **options)

    model = CachedModel(FailsFirst(), tmp_path / "c.sqlite")
    errors = []

    def first():
        try:
            model.complete(["a"])
        except LanguageModelError as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    started.wait(5)
    assert model.complete(["a"]) == ["a #1.0"]  # waits for the first, then asks itself
    thread.join(5)
    assert len(errors) == 1


def test_two_caches_on_one_file_see_one_answer(tmp_path):
    path = tmp_path / "c.sqlite"
    other = CachedModel(Sampler(), path)

    class Racing(Sampler):
        def complete(self, prompts, **options):
            other.complete(prompts)  # another process is faster
            return [f"{prompt} too late" for prompt in prompts]

    assert CachedModel(Racing(), path).complete(["a"]) == ["a #1.0"]


@pytest.mark.parametrize("answers", [["only one"], ["a", 1], ["a", "b", "c"]])
def test_wrong_answers_are_not_kept(tmp_path, answers):
    class Wrong(Sampler):
        def complete(self, prompts, **options):
            return answers

    model = CachedModel(Wrong(), tmp_path / "c.sqlite")
    with pytest.raises(LanguageModelError, match="2 prompts brought"):
        model.complete(["a", "b"])
    with sqlite3.connect(tmp_path / "c.sqlite") as connection:
        assert connection.execute("SELECT COUNT(*) FROM answers").fetchone() == (0,)


def test_any_text_can_be_kept(tmp_path):
    strange = ["", "ÄÖ\0", "\ud83d", "'; DROP TABLE answers; --", "line\nbreak"]
    model = CachedModel(ScriptedModel(strange), tmp_path / "c.sqlite", identity="strange")
    assert model.complete(strange) == strange
    assert model.complete(strange) == strange


def test_cache_is_pickled_without_its_threads(tmp_path):
    model = pickle.loads(
        pickle.dumps(CachedModel(ScriptedModel({"a": "b"}), tmp_path / "c", identity="i"))
    )
    assert model.complete(["a"]) == ["b"]
    assert "ScriptedModel" in repr(model)


def test_a_file_that_is_no_cache_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and not a database" * 100)
    with pytest.raises(ValueError, match=r"notes\.txt"):
        CachedModel(Sampler(), path).complete(["a"])
    assert path.read_text().startswith("these are notes")
    with pytest.raises(ValueError, match="batch_size"):
        CachedModel(Sampler(), path, batch_size=0)


# The pipeline

SENTENCES = ["the red fox runs", "a dog", "the fox and the dog run and run", "red"]


@pytest.fixture(scope="module")
def pipeline():
    """A character-level GPT-2 with random weights: no download, and prompts of many lengths."""
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers isn't installed")
    import torch

    letters = ["<end>", *"abcdefghijklmnopqrstuvwxyz ."]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token="<end>")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.GPT2Config(
            vocab_size=len(letters),
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            initializer_range=1.0,
            bos_token_id=0,
            eos_token_id=0,
        )
        model = transformers.GPT2LMHeadModel(config).eval()
    return transformers.pipeline("text-generation", model=model, tokenizer=wrapped, device="cpu")


def greedy_by_hand(pipeline, prompt, n):
    """Append the likeliest token, n times, without cache, padding or generate."""
    import torch

    ids = pipeline.tokenizer(prompt)["input_ids"]
    start = len(ids)
    for _ in range(n):
        with torch.no_grad():
            ids.append(int(pipeline.model(torch.tensor([ids])).logits[0, -1].argmax()))
        if ids[-1] == 0:
            break
    return pipeline.tokenizer.decode(ids[start:], skip_special_tokens=True)


def test_batched_greedy_answers_are_the_models_own(pipeline):
    expected = [greedy_by_hand(pipeline, prompt, 10) for prompt in SENTENCES]
    assert len(set(expected)) > 1
    for batch_size in (1, 3, 8):
        model = TransformersModel(pipeline, batch_size=batch_size)
        assert model.complete(SENTENCES, max_tokens=10) == expected
    assert pipeline.tokenizer.pad_token is None  # the caller's tokenizer is as it was


def test_stop_strings_end_the_answer_and_the_work(pipeline):
    full = greedy_by_hand(pipeline, "a dog", 20)
    stop = full[3:5]
    steps = []
    handle = pipeline.model.register_forward_hook(lambda *_: steps.append(1))
    try:
        found = TransformersModel(pipeline).complete(["a dog"], max_tokens=20, stop=[stop])
    finally:
        handle.remove()
    assert found == [full[: full.index(stop)]]
    assert len(steps) == full.index(stop) + len(stop)


def test_sampling_repeats_with_the_seed_and_leaves_torch_alone(pipeline):
    import torch

    model = TransformersModel(pipeline)
    before = torch.get_rng_state()
    first = model.complete(SENTENCES, max_tokens=12, temperature=1.0, seed=3)
    assert torch.equal(before, torch.get_rng_state())
    assert model.complete(SENTENCES, max_tokens=12, temperature=1.0, seed=3) == first
    assert model.complete(SENTENCES, max_tokens=12, temperature=1.0, seed=4) != first
    assert model.complete(["a", "a"], max_tokens=12, temperature=3.0) != model.complete(
        ["a", "a"], max_tokens=12, temperature=3.0
    )


def test_low_temperature_is_nearly_greedy(pipeline):
    model = TransformersModel(pipeline)
    assert model.complete(SENTENCES, max_tokens=5, temperature=1e-3, seed=0) == model.complete(
        SENTENCES, max_tokens=5
    )


def test_chat_template_is_used_where_there_is_one(pipeline):
    pipeline.tokenizer.chat_template = (
        "{% for m in messages %}u {{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %} s {% endif %}"
    )
    try:
        found = TransformersModel(pipeline).complete(["a dog"], max_tokens=8)
    finally:
        pipeline.tokenizer.chat_template = None
    assert found == [greedy_by_hand(pipeline, "u a dog s ", 8)]


def test_empty_prompts_and_no_prompts(pipeline):
    model = TransformersModel(pipeline)
    assert model.complete([]) == []
    answers = model.complete(["", "a dog"], max_tokens=5)
    assert answers[1] == greedy_by_hand(pipeline, "a dog", 5)


def test_too_long_is_an_error(pipeline):
    with pytest.raises(LanguageModelError, match="60 tokens and max_tokens=5 exceed the 64"):
        TransformersModel(pipeline).complete(["a" * 60], max_tokens=5)


def test_no_warning_or_log_is_left_to_the_reader(pipeline, capfd, recwarn):
    model = TransformersModel(pipeline)
    model.complete(SENTENCES, max_tokens=3)
    model.complete(SENTENCES, max_tokens=3, temperature=0.7, seed=0, stop=".")
    assert [str(w.message) for w in recwarn] == []
    assert capfd.readouterr().err == ""


def test_folder_is_loaded_when_first_asked(pipeline, tmp_path):
    pipeline.save_pretrained(tmp_path / "tiny")
    model = TransformersModel(tmp_path / "tiny", device="cpu")
    expected = TransformersModel(pipeline).complete(SENTENCES, max_tokens=6)
    stored = pickle.dumps(model)
    assert model.complete(SENTENCES, max_tokens=6) == expected
    assert len(pickle.dumps(model)) == len(stored)  # weights stay in their folder
    assert pickle.loads(stored).complete(SENTENCES, max_tokens=6) == expected
    assert str(tmp_path / "tiny") in repr(model)
    cache = CachedModel(model, tmp_path / "c.sqlite")
    assert cache.complete(SENTENCES, max_tokens=6) == expected
    assert clone(Asker(model)).model is model


def test_pipeline_without_a_name_needs_an_identity(pipeline, tmp_path):
    with pytest.raises(ValueError, match="identity"):
        CachedModel(TransformersModel(pipeline), tmp_path / "c.sqlite")


def test_a_folder_without_a_model_is_named(tmp_path):
    pytest.importorskip("transformers", reason="transformers isn't installed")
    with pytest.raises(LanguageModelError, match="can't be loaded"):
        TransformersModel(tmp_path).complete(["x"])


def test_transformers_is_named_where_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"equipoise\[llm\]"):
        TransformersModel("somewhere").complete(["x"])
    with pytest.raises(ValueError, match="batch_size"):
        TransformersModel("somewhere", batch_size=0)
