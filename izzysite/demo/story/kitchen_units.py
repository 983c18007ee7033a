from typing import Any

MASS = {"g": 1.0, "kg": 1000.0, "oz": 28.3495, "lb": 453.592}
VOLUME = {"ml": 1.0, "l": 1000.0, "cup": 236.588, "tablespoon": 14.787, "teaspoon": 4.929}


def run(args: dict[str, Any]) -> str:
    """Converts within weights or within volumes; between the two it would need to know what is measured."""
    value, source, target = args["value"], args["from"], args["to"]
    for units in (MASS, VOLUME):
        if source in units and target in units:
            return f"{value:g} {source} = {value * units[source] / units[target]:.3g} {target}"
    known = ", ".join([*MASS, *VOLUME])
    return f"I cannot convert {source} to {target}. I know {known}."
