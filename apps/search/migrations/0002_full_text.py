"""The full-text table. Its rows are written by `apps.search.fulltext`, never by triggers."""

from django.db import migrations

# Contentless: the text stands in the passage, the table keeps the postings alone. `ascii` takes every sign
# beyond ASCII as part of a term, so that what the analyser made stays one term in every script.
CREATE = (
    "CREATE VIRTUAL TABLE search_terms USING fts5("
    "terms, content='', detail=none, columnsize=0, tokenize='ascii')"
)


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(CREATE)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TABLE search_terms")


class Migration(migrations.Migration):
    dependencies = [("search", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
