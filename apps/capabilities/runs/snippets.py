"""Code that the user has run once, from an answer: in a sandbox of its own, without network, secrets and requirements. Nothing is kept of it."""

from uuid import UUID

from apps.accounts.secrets import secret_values
from apps.agent.tools.results import Scrubber, result_text
from apps.capabilities.sandbox.base import (
    CodeResult,
    RunError,
    SandboxGone,
    SandboxSpec,
)
from apps.capabilities.sandbox.running import open_sandbox
from apps.core.db.pool import in_db

MAX_CODE_CHARS = 50_000
MAX_OUTPUT_CHARS = 50_000
RUN_SECONDS = 60.0


async def snippet_run(*, user_id: UUID, code: str) -> CodeResult:
    """The code's output, the value of its last line behind it, or its error. It has the limits of a capability's run.

    Raises SandboxUnavailable where nothing can run.
    """
    secrets = await in_db(secret_values, user_id)
    spec = SandboxSpec(user_id=user_id, secrets=secrets)
    try:
        async with open_sandbox(spec) as sandbox:
            found = await sandbox.run_code(code, seconds=RUN_SECONDS)
    except SandboxGone as gone:
        found = CodeResult(error=gone.error)
    scrubber = Scrubber(secrets)

    def shown(text: str) -> str:
        return result_text(text, limit=MAX_OUTPUT_CHARS, scrubber=scrubber)

    parts = (found.stdout, found.stderr, found.value)
    written = "\n".join(part.rstrip("\n") for part in parts if part.strip())
    error = RunError(found.error.code, shown(found.error.message)) if found.error else None
    return CodeResult(error=error, stdout=shown(written), duration_ms=found.duration_ms)
