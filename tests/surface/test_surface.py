"""What users' scripts depend on, compared with recorded files: commands, options, documents and file names."""

from __future__ import annotations

import json

import pytest

from outlive.cli.main import load
from tests.surface import surface

HINT = "the surface has changed; if users are meant to see that: make surface, and a line in CHANGELOG.md"


def recorded(name: str) -> str:
    """Return a recorded part of the surface."""
    return (surface.HERE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", surface.READ)
def test_surface_matches_the_recorded_file(name: str) -> None:
    """Commands, options, schemas, signatures, codes, variables and migrations equal the recorded ones."""
    assert surface.READ[name]() == recorded(name), HINT


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> surface.Scenario:
    """Run every command that prints JSON once."""
    return surface.run_scenario(tmp_path_factory.mktemp("surface"))


def test_json_documents_have_the_recorded_keys(scenario: surface.Scenario) -> None:
    """Each command prints a JSON document with the keys in json_keys.json."""
    assert json.loads(scenario.json_keys) == json.loads(recorded("json_keys.json")), HINT


def test_state_directory_has_the_recorded_file_names(scenario: surface.Scenario) -> None:
    """The files in the state directory have the recorded names, by which every version of Outlive reads them."""
    assert scenario.names_on_disk == recorded("names_on_disk.txt"), HINT


def test_install_writes_the_recorded_commands_into_client_configurations(scenario: surface.Scenario) -> None:
    """Installing writes the recorded commands into configurations. They stay there when Outlive is upgraded."""
    assert scenario.client_configuration == recorded("client_configuration.txt"), HINT


def test_surface_differs_from_the_record_when_an_option_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `list` lacks an option, the comparison with the recorded commands finds this."""
    command = load("list")
    shorter = command.but(options=command.options[1:])
    monkeypatch.setattr(surface, "load", lambda verb: shorter if verb == "list" else load(verb))
    assert surface.commands() != recorded("commands.json")


def test_keys_of_a_document_include_nested_keys() -> None:
    """`keys_of` also returns the keys of nested documents and of documents in lists."""
    document = {"tasks": [{"id": "a", "output": {"bytes": 1}}], "more": False}
    assert sorted(surface.keys_of(document)) == [
        "more",
        "tasks",
        "tasks[].id",
        "tasks[].output",
        "tasks[].output.bytes",
    ]
