"""How a tool call ended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error_code` is "" for success; `result` is what the model gets, `untrusted` whether it quotes others."""

    result: str
    error_code: str = ""
    build_id: str = ""
    duration_ms: int = 0
    untrusted: bool = False

    @property
    def is_error(self) -> bool:
        return bool(self.error_code)
