"""Contract tests that every provider must pass."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from assay.domain.calls import ModelRequest, Purpose, Reply, Role
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.suite import Message
from assay.providers.directory import Directory
from assay.providers.registry import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ProviderContract:
    """Contract tests for one provider: inherit, and set `model`.

    `model` is a model that answers. Override `environment` if the model needs variables, such as a
    key or an address.
    """

    model: ClassVar[ModelSpec]

    def environment(self, folder: Path, /) -> Mapping[str, str]:
        """Return the environment variables that the provider needs, and write any files that it
        reads to the folder.
        """
        return {}

    def test_it_is_registered(self) -> None:
        assert callable(PROVIDERS.load(self.model.provider))

    def test_nothing_prevents_a_run(self, tmp_path: Path) -> None:
        assert self._directory(tmp_path).problems([self.model]) == ()

    def test_it_answers_with_text_and_closes_twice(self, tmp_path: Path) -> None:
        reply = self._ask(self._directory(tmp_path))
        assert isinstance(reply, Reply)
        assert reply.text.strip()
        assert reply.finish_reason
        assert reply.cost_usd is None or reply.cost_usd >= 0

    def test_it_serves_one_event_loop_after_another(self, tmp_path: Path) -> None:
        directory = self._directory(tmp_path)
        assert self._ask(directory).text
        assert self._ask(directory).text

    def _directory(self, folder: Path) -> Directory:
        return Directory(self.environment(folder), base_folder=folder, timeout_s=20)

    def _ask(self, directory: Directory) -> Reply:
        request = ModelRequest(
            model=self.model,
            messages=(Message(role="user", content="What is 6 times 7?"),),
            parameters=DEFAULTS,
            purpose=Purpose(role=Role.CANDIDATE, task="six-by-seven", trial=1, candidate="it"),
        )

        async def ask() -> Reply:
            provider = directory.provider(self.model)
            reply = await provider.complete(request)
            for _ in range(2):
                await provider.close()
                await directory.close()
            return reply

        # Each call has its own loop, because connections belong to the loop that opened them.
        return asyncio.run(ask())
