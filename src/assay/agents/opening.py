"""Open agents that work in workspaces, from Assay and from installed packages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from assay.agents.workspaces import GatedTrials, WorkingAgent, Workspaces, WorkspaceTrials
from assay.domain.programs import Agent
from assay.domain.scenarios import Scenario
from assay.plugin_registry import Registry
from assay.ports import Provider

WORKSPACE_AGENTS: Final[Registry[Callable[[str, Path], WorkingAgent]]] = Registry(
    kind="agent",
    group="assay.workspace_agents",
    own={
        "echo": "assay.agents.commands:EchoAgent",
        "solution": "assay.agents.solution:SolutionAgent",
        "cmd": "assay.agents.commands:CommandAgent",
    },
    members=("__call__",),
)
"""Classes or functions that create an agent from the text after the agent's name and the working
folder.
"""

_TARGET: Final = re.compile(r"(?P<name>[\w.-]+)(?::\s*|\s+|$)(?P<words>.*)", re.DOTALL)


def is_workspace_agent(target: str) -> bool:
    """True if a text such as `cmd: ./agent.sh` or `claude-code --model haiku` names an agent that
    works in workspaces.
    """
    match = _TARGET.fullmatch(target)
    return match is not None and match["name"] in WORKSPACE_AGENTS.names()


def open_agent(program: Agent, workspaces: Workspaces, folder: Path) -> Provider | None:
    """Return the provider for an agent that works in workspaces, or None for any other agent;
    raises `SettingsError`.
    """
    match = _TARGET.fullmatch(program.target)
    if match is None or not is_workspace_agent(program.target):
        return None
    agent = WORKSPACE_AGENTS.load(match["name"])(match["words"], folder)
    if agent.needs.provider:
        workspaces.gate(agent.needs.provider, Scenario(folder="", fixture="", files={}))
        return GatedTrials(agent, program, workspaces)
    return WorkspaceTrials(agent, program, workspaces)
