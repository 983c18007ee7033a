"""Where accounts keep words of the user: what they wrote about themselves."""

from apps.core.purging.places import Place
from apps.core.registries import purge_places


def register_places() -> None:
    purge_places.register(
        "accounts.instructions",
        Place(
            label="Your name and instructions",
            columns=("accounts.preferences.instructions", "accounts.preferences.display_name"),
            keep=True,
            why="Your own settings stay; change them there.",
        ),
    )
