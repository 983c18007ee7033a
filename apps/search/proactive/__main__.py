"""Makes what is kept beside the packages: `python -m apps.search.proactive`, once they are installed."""

from apps.search.embedders.base import EmbedderDown
from apps.search.embedders.own import OWN, model, weights_files
from apps.search.proactive.concern import FOLDER, whole_lesson
from apps.search.proactive.contextual_query import word_usage
from apps.search.proactive.word_table import LANGUAGE, word_table

if __name__ == "__main__":
    word_table(LANGUAGE)
    for near in (False, True):
        whole_lesson(near=near)
    for messages in FOLDER.glob("*.json"):
        word_usage(messages.stem)
    for name in filter(weights_files, OWN):
        try:
            model(name)  # which keeps its weights
        except EmbedderDown as error:
            print(error.message)
