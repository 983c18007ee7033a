"""Whether the database's tables are those of this version, whatever its list of migrations says.

Until the first release the migrations of a checkout may differ from yesterday's under the same name: a database made
then counts as up to date although columns are missing.
"""

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader


def stale_tables() -> list[str]:
    """A phrase (`memory_memory: no column kind`) for each table that differs from its model; a query per table."""
    found = []
    with connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for model in apps.get_models(include_auto_created=True):
            options = model._meta
            if options.proxy or not options.managed:
                continue
            if options.db_table not in present:
                found.append(f"no table {options.db_table}")
                continue
            columns = {
                column.name: column
                for column in connection.introspection.get_table_description(cursor, options.db_table)
            }
            wanted = {field.column for field in options.local_concrete_fields if field.column}
            found += [f"{options.db_table}: no column {name}" for name in sorted(wanted - columns.keys())]
            found += [
                f"{options.db_table}: a column {name} too many"
                for name in sorted(columns.keys() - wanted)
                # One that may be left out, or has a default, holds nothing up.
                if not columns[name].null_ok and columns[name].default is None
            ]
    return found


def unknown_migrations() -> list[str]:
    """Migrations of Izzy's apps that the database has and this version does not: those of a newer one."""
    loader = MigrationLoader(connection)
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith("apps.")}
    known = set(loader.disk_migrations or ())
    return [
        f"migration {label}.{name}"
        for label, name in sorted(loader.applied_migrations or ())
        if label in ours and (label, name) not in known
    ]


def stale_message() -> str:
    """The fault that `serve` and `doctor` report, "" for none."""
    found = [*unknown_migrations(), *stale_tables()]
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"The database was made by another version of Izzy ({found[0]}{more})."
