"""Secrets in command lines are masked by name and by shape; everything else stays as it was
typed.
"""

import shlex

import pytest

from assay.domain.secret_masking import masked_command, masked_line, place_of_secret

_SECRET = "Zq81vLw0Xy72TtPa"


@pytest.mark.parametrize(
    "line",
    [
        f"serve --token {_SECRET}",
        f"vllm run-batch --hf-token {_SECRET} --model m/n",
        f"vllm serve m/n --api-key={_SECRET}",
        f"vllm serve m/n --api-key {_SECRET}",
        f"curl -H 'Authorization: Bearer {_SECRET}' http://host/v1",
        f"curl -H Authorization: Bearer {_SECRET} http://host/v1",
        f"curl -H 'X-Api-Key: {_SECRET}' http://host/v1",
        f"curl '-HAuthorization: Basic {_SECRET}'",
        f"curl -u admin:{_SECRET} http://host/v1",
        f"run s.yaml --set key=sk-proj-{_SECRET}",
        f"run s.yaml hf_{_SECRET}",
        f"run s.yaml ghp_{_SECRET}",
        f"run s.yaml github_pat_{_SECRET}",
        f"run s.yaml --note 'with sk-ant-{_SECRET} inside'",
        f"env HF_TOKEN={_SECRET} run s.yaml",
        f"env OPENAI_API_KEY={_SECRET}&more run s.yaml",
        f"run s.yaml --store postgresql://bob:{_SECRET}@db.local/assay",
        f"run s.yaml --store postgresql://bob:a/{_SECRET}@db.local/assay",
        f"run s.yaml --url 'https://host/v1?api_key={_SECRET}&limit=3'",
        f"""run s.yaml --headers '{{"api_key": "{_SECRET}", "limit": 3}}'""",
        f"run s.yaml --db-password {_SECRET}",
        f"run s.yaml --client-secret={_SECRET}",
        f"run s.yaml eyJhbGciOiJIUzI1NiJ9.{_SECRET}.{_SECRET}",
        f"run 'unfinished --token {_SECRET}",
    ],
)
def test_secrets_are_masked_by_name_and_shape(line: str) -> None:
    masked = masked_line(line)
    assert _SECRET not in masked
    assert "***" in masked
    assert masked_line(masked) == masked


def test_access_keys_of_clouds_are_masked() -> None:
    assert masked_command(["run", "AKIAIOSFODNN7EXAMPLE", "AIzaSyA1234567890bcd"]) == "run *** ***"


@pytest.mark.parametrize(
    "line",
    [
        "assay run suites/first.yaml --trials 3 --judge openai/gpt-4o-mini --budget 2.5",
        "vllm run-batch --max-tokens 100 --tokenizer m/n --max-num-batched-tokens 8192",
        "assay run data.csv --map key:column --map prompt=q",
        "assay run 'my suite.yaml' --note 'a token of thanks'",
        "assay run s.yaml --store postgresql://db.local/assay",
        "assay run suites/sk-learn.yaml --token --json",
    ],
)
def test_other_words_stay_as_they_were_typed(line: str) -> None:
    assert masked_line(line) == line
    assert masked_command(shlex.split(line)) == line


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("./ask --token abc", 2),
        ("./ask --hf-token=abc", 1),
        ("./ask sk-proj-abcdefgh1234abcdefgh", 1),
        ("env PASSWORD=hunter2 ./ask", 1),
        ("curl -H 'Authorization: Bearer abcdef'", 2),
        ("curl -H 'Authorization: Token abcdef'", 2),
        ("""sh -c 'curl -H "Authorization: Bearer $API_TOKEN" x'""", None),
        ("./ask --token $TOKEN", None),
        ("./ask '--token=$(cat key)'", None),
        ("./ask --system 'Use basic English and explain the bearer bond'", None),
        ("./ask --eos-token END --pad-token=0 --cookie jar.txt --credentials run.json", None),
        ("./ask --model key_value_store_v2_small", None),
        ("./ask --token --verbose", None),
        ("./ask --token {{prompt}}", None),
        ("./ask --sort-key name --max-tokens 9 --tokenizer m/n key=3", None),
    ],
)
def test_only_certain_secrets_are_refused(line: str, place: int | None) -> None:
    assert place_of_secret(shlex.split(line)) == place
