"""Markdown: Obsidian, basic-memory, and any folder of notes."""

from datetime import UTC, datetime

import pytest

from .reading import Found, Uploads, zipped

COFFEE = """---
title: Coffee Brewing
type: note
tags: [coffee, "brewing"]
permalink: coffee/brewing
created: 2025-10-24
modified: 2025-10-25T08:00:00+02:00
---

# Coffee Brewing

## Observations
- [method] Pour over is clearer than French press #brewing #slow
- [preference] Äthiopische Bohnen (personal experience)
- [ ] buy a kettle
- [text](https://example.org)

## Relations
- relates_to [[Bean Origins]]
- "in response to" [[Missing Page]]
- [[Bean Origins]]
"""
ORIGINS = "---\naliases:\n  - Bean Origins\n---\nBeans grow near the equator. #geo/tropics\n\n```sh\n# no #tag and no [[link]]\n```\n![[map.png]] [[folder/Tee|Tea]] `[[code]]`\n"
TEA = "Tee aus Darjeeling, siehe [[Coffee Brewing#Observations|Kaffee]] und [[nirgends]]."


def test_a_vault_becomes_notes_observations_and_links(upload: Uploads) -> None:
    files = {
        "Vault/coffee.md": COFFEE,
        "Vault/origins.md": ORIGINS,
        "Vault/folder/Tee.md": TEA,
        "Vault/map.png": b"\x89PNG",
        "Vault/.obsidian/app.json": {},
    }
    found = Found(upload("vault.zip", zipped(files)))
    coffee, pour, beans, *_ = found.texts

    assert found.reader.name == "markdown"
    assert "buy a kettle" in coffee
    assert pour == "Coffee Brewing: Pour over is clearer than French press"
    assert beans == "Coffee Brewing: Äthiopische Bohnen (personal experience)"
    assert [note.tags for note in found.notes] == [
        ["coffee", "brewing"],
        ["method", "brewing", "slow", "coffee"],
        ["preference", "coffee", "brewing"],
        [],
        ["geo/tropics"],
    ]
    assert found.notes[2].kind == "preference"
    assert found.notes[0].created_at == datetime(2025, 10, 24, tzinfo=UTC)
    assert found.notes[0].updated_at == datetime(2025, 10, 25, 6, tzinfo=UTC)
    assert sorted(
        (found.texts.index(s), relation, found.texts.index(t)) for s, relation, t in found.edges
    ) == [
        (0, "links_to", 4),
        (0, "relates_to", 4),
        (1, "elaborates", 0),
        (2, "elaborates", 0),
        (3, "links_to", 0),
        (4, "links_to", 3),
    ]
    assert found.skipped == ["vault.zip: 1 files that are no Markdown, such as pictures, are left out."]


def test_a_vault_whose_pages_have_an_id_and_a_type_is_not_taken_for_mem0s_file(upload: Uploads) -> None:
    files = {
        "v/plan.md": "---\nid: p1\ntype: project\ntags: [garden]\n---\nDig in May.",
        "v/tea.md": "Tea at four.",
        "v/one.md": "---\nid: p2\ntype: idea\n---\nA pond.",
    }
    found = Found(upload("vault.zip", zipped(files)))

    assert found.reader.name == "markdown"
    assert found.texts == ["one\n\nA pond.", "plan\n\nDig in May.", "tea\n\nTea at four."]
    assert found.notes[1].tags == ["garden"]


def test_one_file_is_one_note_under_its_title(upload: Uploads) -> None:
    found = Found(upload("Rezept.md", "Mehl und Wasser mischen.\n\nEine Stunde ruhen lassen."))

    assert found.reader.name == "markdown"
    assert found.texts == ["Rezept\n\nMehl und Wasser mischen.\n\nEine Stunde ruhen lassen."]


@pytest.mark.parametrize(
    "front",
    [
        "title: Plan: part two\ntags: a, b",
        "title: Plan\ntags: [a, b\nbroken: {",
        "title: Plan\ncreated: 2024-13-45",
        "a: &a [x]\nb: &b [*a, *a]\ntitle: Plan",
        "title: !!python/object/apply:os.system ['true']",
        "? [1]\n: x\ntitle: Plan",
    ],
)
def test_front_matter_that_is_no_good_yaml_does_not_cost_the_note(upload: Uploads, front: str) -> None:
    found = Found(upload("plan.md", f"---\n{front}\n---\nThe text.\n"))

    assert found.reader.name in {"markdown", "text"}
    assert found.texts[-1].endswith("The text.")


@pytest.mark.parametrize(
    "front",
    [
        "aliases: [Ann]\ntags:\n  - people\n  - no\nborn: 1990-02-30",
        'aliases: [Ann]\ntags: [people, "no"]\ndate: {{date}}',
        "aliases:\n- Ann\ntags:\n- people\n- 'no'\ntitle: Anna: a friend",
    ],
)
def test_a_value_that_cannot_be_costs_no_other(upload: Uploads, front: str) -> None:
    pages = {"Anna.md": f"---\n{front}\n---\nLikes tea.", "b.md": "Met [[Ann]]."}
    found = Found(upload("vault.zip", zipped(pages)))

    assert found.notes[0].tags == ["people", "no"]
    assert [relation for _, relation, _ in found.edges] == ["links_to"]


def test_a_bullet_that_only_begins_like_a_relation_keeps_its_words(upload: Uploads) -> None:
    pages = {
        "day.md": "- Call [[Ann]] about the lease, 900 a month\n- knows [[Ann]]\n- owes [[Ann]] (20 since May)",
        "Ann.md": "A friend.",
    }
    found = Found(upload("vault.zip", zipped(pages)))

    assert found.texts[1] == (
        "day\n\n- Call [[Ann]] about the lease, 900 a month\n- owes [[Ann]] (20 since May)\n\nknows Ann"
    )
    assert sorted(relation for _, relation, _ in found.edges) == ["knows", "links_to", "owes"]


def test_fields_that_izzy_has_too_are_kept(upload: Uploads) -> None:
    front = "id: n-1\nkind: decision\nimportance: 5\ntier: short_term\ncategory: standing\nstatus: archived\noccasions: [on trips]\nvalid_to: 2030-01-01"
    [note] = Found(upload("n.md", f"---\n{front}\n---\nKeep it.")).notes

    assert (note.kind, note.importance, note.tier, note.category, note.archived) == (
        "decision",
        5,
        "short_term",
        "standing",
        True,
    )
    assert note.occasions == ["on trips"]
    assert note.valid_to == datetime(2030, 1, 1, tzinfo=UTC)


def test_empty_and_equal_files_are_skipped_with_the_reason(upload: Uploads) -> None:
    files = {"a/note.md": "Same", "b/note.md": "Same", "empty.md": "  \n", "link.md": "[[b/note]]"}
    found = Found(upload("v.zip", zipped(files)))

    assert len(found.texts) == 2
    assert [each.partition(":")[0] for each in found.skipped] == ["b/note.md", "empty.md"]
    assert found.edges == [(found.texts[1], "links_to", found.texts[0])]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_other_encodings_are_read(upload: Uploads, encoding: str) -> None:
    text = "---\ntitle: Café\n---\nÀ côté de la gare, près du marché; le garçon a été très gentil."
    found = Found(upload("cafe.md", text.encode(encoding)))

    assert found.texts == ["Café\n\nÀ côté de la gare, près du marché; le garçon a été très gentil."]


def test_a_long_page_is_cut_at_its_paragraphs(upload: Uploads) -> None:
    page = "\n\n".join(f"Paragraph {number} " + "wort " * 150 for number in range(60))
    found = Found(upload("v.zip", zipped({"long.md": page, "x.md": "[[long]]"})))

    assert len(found.texts) > 2
    assert all(text.startswith(("long", "Paragraph", "x")) for text in found.texts)
    assert len(found.edges) == 1
