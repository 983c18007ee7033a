import re
from collections import Counter
from typing import Any

WORDS_PER_MINUTE = 230


def run(args: dict[str, Any]) -> str:
    """Counts words, sentences and characters of a text, and tells its most frequent longer words."""
    text = str(args["text"])
    words = re.findall(r"\w+(?:['’-]\w+)*", text)
    if not words:
        return "There are no words in this text."
    sentences = max(1, len(re.findall(r"[.!?…]+(?:\s|$)", text)))
    frequent = Counter(word.lower() for word in words if len(word) > 3).most_common(3)
    lines = [
        f"{len(words)} words, {sentences} sentences, {len(text)} characters.",
        f"On average {len(words) / sentences:.1f} words a sentence; about {max(1, round(len(words) / WORDS_PER_MINUTE))} min to read.",
    ]
    if frequent and frequent[0][1] > 1:
        lines.append(
            "Most frequent: " + ", ".join(f"{word} ({count})" for word, count in frequent) + "."
        )
    return "\n".join(lines)
