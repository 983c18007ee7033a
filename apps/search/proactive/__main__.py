"""Makes what is kept beside the packages: `python -m apps.search.proactive`, once they are installed."""

from apps.search.embedders.minilm import model, weights_file
from apps.search.proactive.concern import FOLDER, whole_lesson
from apps.search.proactive.contextual_query import word_usage
from apps.search.proactive.word_table import keep_table

if __name__ == "__main__":
    keep_table()
    whole_lesson()
    for messages in FOLDER.glob("*.json"):
        word_usage(messages.stem)
    if weights_file() is not None:
        model()  # which keeps its weights
