"""Values of settings, and where each came from."""

from __future__ import annotations

from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # its stubs are a package of their own
import pytest

from assay.app.address_rules import address_rules
from assay.app.settings import SETTINGS, read_settings, settings_schema
from assay.domain.errors import SettingsError


def test_an_option_goes_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("concurrency: 2\njudge: vllm/a\nreviewer: ann\n", "utf-8")
    result = read_settings(
        tmp_path,
        environment={"ASSAY_CONCURRENCY": "3", "ASSAY_JUDGE": "vllm/b"},
        options={"concurrency": 4, "judge": None},
    )
    assert (result.values["concurrency"], result.origins["concurrency"]) == (4, "option")
    assert (result.values["judge"], result.origins["judge"]) == ("vllm/b", "ASSAY_JUDGE")
    assert (result.values["reviewer"], result.origins["reviewer"]) == (
        "ann",
        str(tmp_path / "assay.yaml"),
    )
    assert (result.values["local_only"], result.origins["local_only"]) == (False, "default")


def test_the_file_is_found_in_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("reviewer: ann\n", "utf-8")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    result = read_settings(below, environment={})
    assert result.values["reviewer"] == "ann"
    assert result.store_url == f"sqlite:///{tmp_path / '.assay' / 'assay.db'}"


@pytest.mark.parametrize("named", ["other/mine.db", "sqlite:///other/mine.db"])
def test_a_plain_path_names_a_store_in_file_and_variable(tmp_path: Path, named: str) -> None:
    assert (
        read_settings(tmp_path, environment={"ASSAY_STORE": named}).store_url
        == "sqlite:///other/mine.db"
    )
    (tmp_path / "assay.yaml").write_text(f"store: {named}\n", "utf-8")
    assert read_settings(tmp_path, environment={}).store_url == "sqlite:///other/mine.db"


@pytest.mark.parametrize("end", ["repository", "home", "shared"])
def test_the_search_ends_at_repository_home_and_shared_folders(tmp_path: Path, end: str) -> None:
    top = tmp_path / "top"
    below = top / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "assay.yaml").write_text("reviewer: mallory\n", "utf-8")
    (tmp_path / ".env").write_text("ASSAY_REVIEWER=mallory\n", "utf-8")
    environment = {}
    if end == "repository":
        (top / ".git").mkdir()
    elif end == "home":
        environment["HOME"] = str(top)
    else:
        top.chmod(0o777)
    assert read_settings(below, environment=environment).values["reviewer"] is None
    (top / "assay.yaml").write_text("reviewer: ann\n", "utf-8")
    reviewer = read_settings(below, environment=environment).values["reviewer"]
    assert reviewer == (None if end == "shared" else "ann")


def test_a_file_that_others_can_write_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "assay.yaml"
    file.write_text("reviewer: mallory\n", "utf-8")
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="every user of this machine") as refusal:
        read_settings(tmp_path, environment={})
    assert refusal.value.where == str(file)
    assert "chmod go-w" in refusal.value.remedy
    trusting = {"ASSAY_TRUSTED_FOLDERS": str(tmp_path)}
    assert read_settings(tmp_path, environment=trusting).values["reviewer"] == "mallory"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chromium", "./evil.sh"),
        ("keys", "{https://evil.example: OPENAI_API_KEY}"),
        ("allow_http_keys", "true"),
        ("webhook", "https://evil.example/collect"),
        ("webhook_secret", "known"),
        ("server", "https://evil.example"),
        ("server_token", "known"),
        ("sandbox", "none"),
    ],
)
def test_a_project_file_cannot_set_what_is_the_users_own(
    tmp_path: Path, key: str, value: str
) -> None:
    (tmp_path / "assay.yaml").write_text(f"{key}: {value}\n", "utf-8")
    with pytest.raises(SettingsError, match=f"assay.yaml, {key}"):
        read_settings(tmp_path, environment={})
    (tmp_path / "assay.yaml").unlink()
    (tmp_path / ".env").write_text(f"ASSAY_{key.upper()}={value}\n", "utf-8")
    with pytest.raises(SettingsError, match=f".env, {key}"):
        read_settings(tmp_path, environment={})
    assert read_settings(tmp_path, environment={f"ASSAY_{key.upper()}": value}).values[key]


@pytest.mark.parametrize(
    "name", ["ASSAY_TOKEN", "ASSAY_HOSTS", "ASSAY_TRUSTED_FOLDERS", "ASSAY_DEBUG"]
)
def test_dotenv_cannot_set_variables_that_open_the_server(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=known-to-the-author\n", "utf-8")
    with pytest.raises(SettingsError, match=f".env, {name}"):
        read_settings(tmp_path, environment={})
    assert read_settings(tmp_path, environment={name: "mine"}).environment[name] == "mine"


def test_every_setting_is_the_users_own_unless_it_is_listed_for_projects() -> None:
    allowed = {setting.key for setting in SETTINGS if setting.project}
    sends_or_spends = {
        "webhook",
        "webhook_secret",
        "server",
        "server_token",
        "keys",
        "allow_http_keys",
        "fetch.allow",
    }
    assert not allowed & (sends_or_spends | {"chromium", "sandbox"})


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://u:p@evil.example/x",
        "postgresql://u:p@/x?host=evil.example",
        "postgresql://u:p@db/x?hostaddr=8.8.8.8",
        "postgresql://u:p@db,evil.example/x",
        "postgresql://u:@[db",
        "/somewhere/else.db",
        "sqlite:///../else.db",
        ".git/x.db",
    ],
)
def test_a_project_file_names_no_store_elsewhere(tmp_path: Path, store: str) -> None:
    for file, text in (("assay.yaml", f'store: "{store}"\n'), (".env", f"ASSAY_STORE='{store}'\n")):
        project = tmp_path / file.strip(".")
        project.mkdir()
        (project / file).write_text(text, "utf-8")
        with pytest.raises(SettingsError, match=r"beyond this machine|outside the project"):
            read_settings(project, environment={})
        assert read_settings(project, environment={"ASSAY_STORE": store}).values["store"] == store


def test_a_project_file_puts_results_into_the_project_only(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("results: records/2026\n", "utf-8")
    assert read_settings(tmp_path, environment={}).values["results"] == "records/2026"
    (tmp_path / "assay.yaml").write_text("results: ../elsewhere\n", "utf-8")
    with pytest.raises(SettingsError, match="outside the project"):
        read_settings(tmp_path, environment={})


def test_a_project_file_lets_the_browser_name_only_local_origins(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text('web_allow_origins: ["http://127.0.0.1:8000"]\n', "utf-8")
    assert read_settings(tmp_path, environment={}).values["web_allow_origins"]
    (tmp_path / "assay.yaml").write_text('web_allow_origins: ["https://evil.example"]\n', "utf-8")
    with pytest.raises(SettingsError, match="beyond this machine"):
        read_settings(tmp_path, environment={})


def test_a_project_file_lowers_the_users_budget_and_never_raises_it(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".config" / "assay" / "assay.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("budget: 5\n", "utf-8")
    project = tmp_path / "home" / "project"
    project.mkdir()
    for written, held in ((1000, 5), (2, 2)):
        (project / "assay.yaml").write_text(f"budget: {written}\n", "utf-8")
        assert (
            read_settings(project, environment={"HOME": str(tmp_path / "home")}).values["budget"]
            == held
        )
    (project / "assay.yaml").unlink()
    (project / ".env").write_text("ASSAY_BUDGET=1000\n", "utf-8")
    assert (
        read_settings(project, environment={"HOME": str(tmp_path / "home")}).values["budget"] == 5
    )
    assert (
        read_settings(
            project, environment={"HOME": str(tmp_path / "home"), "ASSAY_BUDGET": "9"}
        ).values["budget"]
        == 9
    )


@pytest.mark.parametrize("named", ["/", "..", "../..", "link", ".git", "a\\0b"])
def test_a_project_file_opens_no_folder_outside_the_project(tmp_path: Path, named: str) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".prompts").mkdir()
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (project / "link").symlink_to(tmp_path / "home" / ".ssh")
    (project / "assay.yaml").write_text("read_from: [.prompts, docs/new]\n", "utf-8")
    assert len(read_settings(project, environment={}).read_from) == 3
    for file, text in (
        ("assay.yaml", f'read_from: ["{named}"]\n'),
        (".env", f"ASSAY_READ_FROM='[\"{named}\"]'\n"),
    ):
        (project / "assay.yaml").unlink(missing_ok=True)
        (project / file).write_text(text, "utf-8")
        with pytest.raises(SettingsError, match="outside the project"):
            read_settings(project, environment={})
        assert read_settings(project, environment={}, options={"read_from": ["/data"]})
        assert read_settings(project, environment={"ASSAY_READ_FROM": "[/data]"}).values[
            "read_from"
        ] == ["/data"]


@pytest.mark.parametrize(
    "address", ["postgresql://u@db/x", "postgres://db", "postgresql:///x?host=db"]
)
def test_a_project_file_collects_no_password_of_postgresql(tmp_path: Path, address: str) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "assay.yaml").write_text(f'store: "{address}"\n', "utf-8")
    assert read_settings(project, environment={"HOME": str(home)}).store_url == address
    with pytest.raises(SettingsError, match="PGPASSWORD"):
        read_settings(project, environment={"HOME": str(home), "PGPASSWORD": "secret"})
    (home / ".pgpass").touch()
    with pytest.raises(SettingsError, match="pgpass"):
        read_settings(project, environment={"HOME": str(home)})
    assert (
        read_settings(project, environment={"HOME": str(home)}, options={"store": "s.db"}).values[
            "store"
        ]
        == "s.db"
    )
    (project / "assay.yaml").write_text("store: postgresql://u:p@db/x\n", "utf-8")
    assert "db" in read_settings(project, environment={"HOME": str(home)}).store_url


def test_the_users_own_file_lies_below_the_project(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".config" / "assay" / "assay.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(
        "chromium: /opt/chromium\nreviewer: ann\nlocal_only: true\nconcurrency: 2\n", "utf-8"
    )
    project = tmp_path / "project"
    project.mkdir()
    (project / "assay.yaml").write_text("reviewer: bob\nlocal_only: false\n", "utf-8")
    (project / ".env").write_text("ASSAY_LOCAL_ONLY=false\n", "utf-8")
    settings = read_settings(project, environment={"HOME": str(tmp_path / "home")})
    assert settings.values["chromium"] == "/opt/chromium"
    assert (settings.values["reviewer"], settings.values["concurrency"]) == ("bob", 2)
    assert settings.values["local_only"] is True, "a project cannot switch it off"
    assert settings.origins["local_only"] == str(own)


def test_a_setting_without_a_value_keeps_its_default(tmp_path: Path) -> None:
    (tmp_path / "assay.yaml").write_text("prices:\nread_from:\nweb_allow_origins:\n", "utf-8")
    settings = read_settings(tmp_path, environment={"ASSAY_KEYS": "null"})
    assert [settings.values[key] for key in ("prices", "read_from", "keys")] == [{}, [], {}]
    assert address_rules(settings, web=True).web == frozenset()


def test_dotenv_does_not_insert_variables_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "OPENAI_BASE_URL=http://evil.example/${OPENAI_API_KEY}\n", "utf-8"
    )
    settings = read_settings(tmp_path, environment={"OPENAI_API_KEY": "secret"})
    assert settings.environment["OPENAI_BASE_URL"] == "http://evil.example/${OPENAI_API_KEY}"
    assert settings.project_variables == {"OPENAI_BASE_URL"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{https://api.example.com/v1: NAME}", "more than scheme"),
        ("{api.example.com: NAME}", "https://"),
        ("{https://api.example.com: sk-secret}", "does not name a variable"),
    ],
)
def test_a_wrong_binding_of_a_key_is_named_and_not_repeated(
    tmp_path: Path, settings: str, said: str
) -> None:
    read = read_settings(tmp_path, environment={"ASSAY_KEYS": settings})
    with pytest.raises(SettingsError, match=said) as refusal:
        address_rules(read, web=False)
    assert "sk-secret" not in str(refusal.value)


def test_variables_of_dotenv_lie_below_those_of_the_process(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-file\nASSAY_REVIEWER=bob\n", "utf-8")
    result = read_settings(tmp_path, environment={"ASSAY_REVIEWER": "cid"})
    assert result.environment["OPENAI_API_KEY"] == "from-file"
    assert result.values["reviewer"] == "cid"
    assert "from-file" not in repr(result)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("concurency: 3\n", "Did you mean 'concurrency'?"),
        ("concurrency: many\n", "must be of type integer"),
        ("local_only: 1\n", "must be of type boolean"),
        ("- a\n", "must be a mapping"),
        ("a: [\n", "assay.yaml"),
        ("concurrency: 1\nconcurrency: 2\n", "is given twice"),
        ("judge: " + "[" * 100_000, "assay.yaml"),
    ],
)
def test_a_wrong_file_gets_one_message_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "assay.yaml").write_text(text, "utf-8")
    with pytest.raises(SettingsError) as error:
        read_settings(tmp_path, environment={})
    assert said in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_the_schema_names_every_setting() -> None:
    assert set(settings_schema()["properties"]) == {setting.key for setting in SETTINGS}


def test_the_schema_of_settings_has_the_grammar_of_rubrics() -> None:
    schema = settings_schema()
    problems = [
        error.message
        for error in jsonschema.Draft202012Validator(schema).iter_errors(
            {"rubric": {"criteria": ["a"], "x": 1}}
        )
    ]
    assert len(problems) == 1
    described = {
        "criteria": ["rigor"],
        "scores": {"Yes": 1, "No": 0},
        "structure": {"model": "openai/small"},
    }
    jsonschema.Draft202012Validator(schema).validate(
        {"rubric": described, "judge": {"model": "openai/o1", "prompt": "Grade."}}
    )
    jsonschema.Draft202012Validator(schema).validate({"rubric": "rubric.yaml"})
