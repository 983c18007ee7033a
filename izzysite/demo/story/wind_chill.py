from typing import Any


def run(args: dict[str, Any]) -> str:
    """Tells how cold it feels; the formula holds up to 10 °C and from 4.8 km/h on."""
    temperature, wind = args["temperature"], args["wind"]
    felt = temperature
    if temperature <= 10 and wind >= 4.8:
        power = wind**0.16
        felt = 13.12 + 0.6215 * temperature - 11.37 * power + 0.3965 * temperature * power
    advice = "cover hands and face" if felt < 0 else "an extra layer will do"
    return f"Feels like {round(felt)} °C: {advice}."
