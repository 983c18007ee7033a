"""Cost of a call, by the price table of the settings."""

from django.conf import settings

from apps.agent.client import Usage

MILLION = 1_000_000


def priced(usage: dict[str, int], model: str) -> Usage:
    """The tokens of one call (in the names of the Messages API) with their cost in dollars.

    Prices are those of `IZZY_MODEL_PRICES` under the longest beginning of the model's name; unlisted models are free.
    """
    sent, received = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
    prices = _prices(model)
    cost = (
        sum(count * price for count, price in zip((sent, received, read, written), prices, strict=True))
        / MILLION
    )
    return Usage(sent, received, read, written, cost, calls=1)


def _prices(model: str) -> tuple[float, float, float, float]:
    table = settings.IZZY_MODEL_PRICES
    names = [name for name in table if model.startswith(name)]
    if not names:
        return (0.0, 0.0, 0.0, 0.0)
    sent, received, read, written = table[max(names, key=len)]
    return (float(sent), float(received), float(read), float(written))
