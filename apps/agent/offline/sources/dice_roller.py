import random
import re
from typing import Any

NOTATION = re.compile(r"(\d*)d(\d+)([+-]\d+)?")


def run(args: dict[str, Any]) -> str:
    """Rolls dice given in the usual notation, such as 3d6 or 2d10+4."""
    wanted = str(args["dice"]).lower().replace(" ", "")
    match = NOTATION.fullmatch(wanted)
    if not match:
        return f"{args['dice']!r} are no dice I know. Write for example 3d6, d20 or 2d10+4."
    count, sides = int(match[1] or 1), int(match[2])
    extra = int(match[3] or 0)
    if not (1 <= count <= 100 and 2 <= sides <= 1000):
        return "Roll 1 to 100 dice with 2 to 1000 sides."
    rolls = [random.randint(1, sides) for _ in range(count)]
    shown = " + ".join(map(str, rolls)) + (f" {match[3][0]} {match[3][1:]}" if match[3] else "")
    return f"{wanted}: {shown} = {sum(rolls) + extra}"
