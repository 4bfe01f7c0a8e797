"""A model judge on the engines of this machine's policies: started, used and closed on one loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from agents.judges.model import DEFAULT_TIMEOUT_S, ModelJudge
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings

JudgeMode = Literal["choices", "json"]


@asynccontextmanager
async def model_judge(
    spec: str | None,
    *,
    settings: PolicySettings,
    home: Path,
    mode: JudgeMode = "choices",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    policies: Policies | None = None,
) -> AsyncIterator[ModelJudge | None]:
    """Yield the judge that `spec` (`policy[:ADAPTER]` or `openai:MODEL@URL`) names; None for None.

    `policies`, where they are given, have its engine started; they stay open.

    Raises `PolicyError` where its engine does not start, `BadPlayer` for a spec that names no model.
    """
    if spec is None:
        yield None
        return
    used = Policies(settings, home=home) if policies is None else policies
    if policies is None:
        await used.start([spec])
    try:
        adapter = await used.pin(spec)
        yield ModelJudge(used.batcher(spec), adapter=adapter, mode=mode, timeout_s=timeout_s)
    finally:
        if policies is None:
            await used.close()
