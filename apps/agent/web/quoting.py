"""Other people's words, between marks that they cannot write themselves."""

import re
from xml.sax.saxutils import quoteattr


def quoted(name: str, text: str, **fields: str) -> str:
    """`<name field="…">`, the text, `</name>`. A text that closes the mark itself, or opens another, is defused."""
    harmless = re.sub(rf"<(?=\s*+(?:/\s*+)?{re.escape(name)}\b)", "&lt;", text, flags=re.IGNORECASE)
    attributes = "".join(
        f" {key}={quoteattr(' '.join(value.split()))}" for key, value in fields.items() if value
    )
    return f"<{name}{attributes}>\n{harmless}\n</{name}>"
