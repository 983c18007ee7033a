"""A yes or no, to a tool call as to a build."""

import pytest

from apps.core.errors import InvalidInput
from apps.core.text import is_yes


@pytest.mark.parametrize(
    ("value", "yes"),
    [
        *((word, True) for word in ("allow", "approve", "Approved", "yes", " YES ", "true", True)),
        *((word, False) for word in ("decline", "deny", "denied", "reject", "No", "false", False)),
    ],
)
def test_a_decision_is_understood_in_its_usual_words(value: object, yes: bool) -> None:
    assert is_yes(value) is yes


@pytest.mark.parametrize("value", ["perhaps", "", 1, None, ["yes"], {"a": 1}])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="allow"):
        is_yes(value)
