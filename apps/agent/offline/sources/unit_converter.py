from typing import Any

UNITS = {
    "length": {
        "mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "yd": 0.9144, "mi": 1609.344,
    },
    "mass": {"mg": 1e-6, "g": 0.001, "kg": 1.0, "t": 1000.0, "oz": 0.028349523125, "lb": 0.45359237},
    "volume": {"ml": 0.001, "l": 1.0, "m3": 1000.0, "tsp": 0.00492892159375, "cup": 0.2365882365, "gal": 3.785411784},
    "time": {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    "speed": {"m/s": 1.0, "km/h": 1 / 3.6, "mph": 0.44704, "kn": 1852 / 3600},
}  # fmt: skip
NAMES = {
    "millimetre": "mm", "centimetre": "cm", "metre": "m", "kilometre": "km", "inch": "in", "inche": "in", "foot": "ft",
    "feet": "ft", "yard": "yd", "mile": "mi", "milligram": "mg", "gram": "g", "kilogram": "kg", "kilo": "kg",
    "tonne": "t", "ounce": "oz", "pound": "lb", "millilitre": "ml", "litre": "l", "teaspoon": "tsp", "gallon": "gal",
    "second": "s", "minute": "min", "hour": "h", "day": "d", "knot": "kn", "celsius": "c", "fahrenheit": "f",
    "kelvin": "k", "°c": "c", "°f": "f", "kph": "km/h",
}  # fmt: skip
TEMPERATURES = {"c", "f", "k"}


def run(args: dict[str, Any]) -> str:
    """Converts a value between units of length, mass, volume, time, speed and temperature."""
    value, source, target = float(args["value"]), unit_of(args["from"]), unit_of(args["to"])
    if source in TEMPERATURES and target in TEMPERATURES:
        result = from_celsius(to_celsius(value, source), target)
        return f"{value:g} {label(source)} = {round(result, 2):g} {label(target)}"
    for units in UNITS.values():
        if source in units and target in units:
            return f"{value:g} {source} = {float(f'{value * units[source] / units[target]:.6g}'):g} {target}"
    known = ", ".join(name for units in UNITS.values() for name in units)
    return f"I cannot convert {args['from']} to {args['to']}. I know {known}, °C, °F and K."


def unit_of(text: object) -> str:
    word = str(text).strip().lower().replace("meter", "metre").replace("liter", "litre")
    known = {name for units in UNITS.values() for name in units} | TEMPERATURES
    if word in known:
        return word
    return NAMES.get(word) or NAMES.get(word.removesuffix("s")) or word.removesuffix("s")


def to_celsius(value: float, unit: str) -> float:
    return {"c": value, "f": (value - 32) * 5 / 9, "k": value - 273.15}[unit]


def from_celsius(value: float, unit: str) -> float:
    return {"c": value, "f": value * 9 / 5 + 32, "k": value + 273.15}[unit]


def label(unit: str) -> str:
    return {"c": "°C", "f": "°F", "k": "K"}[unit]
