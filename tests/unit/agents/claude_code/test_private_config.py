"""What of `.claude.json` goes into a sandbox, and what comes back."""

import copy
from typing import Any

import pytest

from sidestage.agents.claude_code.private_config import (
    make_private_config,
    merge_counters,
)

PROJECT = "/home/dev/project"
REAL: dict[str, Any] = {
    "hasCompletedOnboarding": True,
    "theme": "dark",
    "customApiKeyResponses": {"approved": ["x"], "rejected": []},
    "mcpServers": {"mine": {"env": {"TOKEN": "secret"}}},
    "someNewKey": 1,
    "projects": {
        PROJECT: {
            "hasTrustDialogAccepted": True,
            "allowedTools": [],
            "mcpServers": {"its": {"env": {"TOKEN": "secret"}}},
            "history": [{"display": "a prompt"}],
            "lastCost": 1.5,
        },
        "/home/dev/other": {"hasTrustDialogAccepted": True},
    },
}


def test_the_copy_has_the_gates_and_the_project_s_own_entry_only() -> None:
    private = make_private_config(REAL, [PROJECT])
    assert private == {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["x"], "rejected": []},
        "projects": {
            PROJECT: {
                "hasTrustDialogAccepted": True,
                "allowedTools": [],
                "lastCost": 1.5,
            }
        },
    }


def test_trust_in_a_folder_above_counts_as_it_does_for_the_cli() -> None:
    private = make_private_config(REAL, [PROJECT + "/sub", "/home/dev/projects"])
    assert private["projects"] == {
        PROJECT + "/sub": {"hasTrustDialogAccepted": True},
        "/home/dev/projects": {},
    }


@pytest.mark.parametrize("projects", [None, [], {PROJECT: None}, {PROJECT: []}])
def test_a_strange_file_makes_a_small_copy(projects: object) -> None:
    assert make_private_config({"projects": projects}, [PROJECT]) == {
        "projects": {PROJECT: {}}
    }


def merged(**entry: object) -> dict[str, object]:
    """Return what *entry*, written inside, changed of the project's entry."""
    real = copy.deepcopy(REAL)
    merge_counters(real, {"projects": {PROJECT: entry}}, [PROJECT])
    before = REAL["projects"][PROJECT]
    after = real["projects"][PROJECT]
    assert {**real, "projects": None} == {**REAL, "projects": None}
    return {key: value for key, value in after.items() if before.get(key) != value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lastCost", 2.5),
        ("lastTotalInputTokens", 12),
        ("lastFpsLow1Pct", 80.6),
        ("lastGracefulShutdown", False),
        ("lastSessionId", "2123fe52-6fe9-4041-9dd7-52bdff4e6587"),
        ("lastVersionBase", "2.1.328"),
        ("lastModelUsage", {"claude-opus-5-5": {"inputTokens": 1, "costUSD": 0.5}}),
    ],
)
def test_counters_come_back(key: str, value: object) -> None:
    assert merged(**{key: value}) == {key: value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mcpServers", {"evil": {"command": "evil"}}),
        ("allowedTools", ["Bash"]),
        ("hasTrustDialogAccepted", False),
        ("enabledMcpjsonServers", ["evil"]),
        ("hasClaudeMdExternalIncludesApproved", True),
        ("lastUnknown", 1),
        ("lastCostCommand", 1),
        ("lastCost", "evil"),
        ("lastCost", float("nan")),  # Python writes it, JSON has no such number
        ("lastCost", float("inf")),
        ("lastCost", 2**53 + 1),
        ("lastModelUsage", {"m" * 129: {}}),
        ("lastModelUsage", {"m": {"k" * 129: 1}}),
        ("lastCost", True),
        ("lastCost", None),
        ("lastGracefulShutdown", 1),
        ("lastSessionId", "--dangerously-skip-permissions"),
        ("lastSessionId", "x" * 65),
        ("lastSessionId", "1\n"),
        ("lastVersionBase", {"a": 1}),
        ("lastModelUsage", {"m": {"command": "evil"}}),
        ("lastModelUsage", {"m": 1}),
        ("lastModelUsage", {str(n): {} for n in range(33)}),
    ],
)
def test_nothing_else_comes_back(key: str, value: object) -> None:
    assert merged(**{key: value}) == {}


def test_an_entry_the_owner_does_not_have_is_not_made() -> None:
    real: dict[str, Any] = {"projects": {"/other": {}}}
    inside = {"projects": {PROJECT: {"lastCost": 1}}}
    assert not merge_counters(real, inside, [PROJECT])
    assert real == {"projects": {"/other": {}}}


def test_no_change_is_told_as_none() -> None:
    real = copy.deepcopy(REAL)
    inside = {"projects": {PROJECT: {"lastCost": 1.5}}}
    assert not merge_counters(real, inside, [PROJECT])
    assert merge_counters(real, {"projects": {PROJECT: {"lastCost": 2}}}, [PROJECT])
