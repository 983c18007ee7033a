"""Each language is stemmed and stripped of its own function words."""

import pytest

from apps.accounts.models import Preferences, User
from apps.memory.similarity import NOTES
from apps.search.selectors import search
from apps.search.text.analysis import MAX_TERM_CHARS, detect_language, document_terms, split_words

from .conftest import found, save


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I would like to know where the station is", "en"),
        ("Ich mag keine Garnelen und der Fisch ist nicht gut", "de"),
        ("Je ne sais pas où est la gare", "fr"),
        ("No sé dónde está la estación", "es"),
        ("Ik weet niet waar het station is", "nl"),
        ("Где находится мой дом и когда он будет готов", "ru"),
        ("我住在北京", "zh"),
        ("東京に住んでいます", "ja"),
        ("서울에 살아요", "ko"),
        ("أين المحطة", "ar"),
        ("איפה התחנה", "he"),
        ("สวัสดีชาวโลก", "th"),
        ("नमस्ते दुनिया", "hi"),
        ("MacBook Proを買った", "ja"),
        ("The user is allergic to α-gal.", "en"),
        ("Die Schwester von 陽子 ist nicht da und die Mutter auch nicht", "de"),
        ("Her tattoo reads שלום.", "en"),
        ("Ο γιατρός μου: https://www.example.com/clinics/athens/opening-hours", "el"),
        ("Παίζω Minecraft και Fortnite", "el"),
        ("טבע וים, anna.schmidt-mueller@example.com", "he"),
        ("xyzzy 42", "en"),
        ("Yes, go on.", "en"),
        ("One o'clock", "en"),
        ("Ten to one", "en"),
        ("Znam go od dawna", "pl"),
        ("One są w domu, a nie w pracy", "pl"),
        ("", "en"),
    ],
)
def test_a_text_tells_its_language(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_an_irish_name_is_found_by_itself(alice: User) -> None:
    save(alice, "Mrs O'Brien teaches the cello", "The cello is in the cellar", "Tea is green")
    assert found(alice, "Brien")[0] == found(alice, "O'Brien")[0] == "Mrs O'Brien teaches the cello"


def test_german_notes_are_found_by_other_forms(alice: User) -> None:
    save(
        alice,
        "Ich habe gestern zwei Häuser und einen Garten angesehen",
        "Ich kaufe morgen Brot für die Kinder",
    )
    assert found(alice, "Was war mit dem Garten und dem Haus?")[0].startswith("Ich habe gestern")


def test_one_foreign_sign_makes_no_other_language_of_a_note(alice: User) -> None:
    save(
        alice,
        "The user's sister 陽子 breeds huskies.",
        "The husky of a neighbour barks.",
        "Tea is green.",
    )
    assert "The user's sister 陽子 breeds huskies." in found(alice, "husky")[:2]
    assert document_terms("陽子 breeds huskies") == ("en", ["陽子", "breed", "huski"])


def test_accents_may_be_left_out(alice: User) -> None:
    save(alice, "Je vais au café près de la mairie avec ma sœur", "Je vais à la plage avec mon frère")
    assert found(alice, "cafe")[0].startswith("Je vais au café")


def test_chinese_and_japanese_are_found_by_parts_of_a_sentence(alice: User) -> None:
    save(alice, "我住在北京的一个小公寓里", "我喜欢吃苹果", "東京タワーは高いです")
    assert found(alice, "北京公寓")[0].startswith("我住在北京")
    assert found(alice, "東京タワー")[0] == "東京タワーは高いです"


def test_hebrew_and_arabic_are_found(alice: User) -> None:
    save(alice, "המפתח נמצא מתחת לשטיח", "السيارة حمراء")
    assert found(alice, "המפתח")[0] == "המפתח נמצא מתחת לשטיח"
    assert found(alice, "السيارة")[0] == "السيارة حمراء"


def test_notes_in_two_languages_of_one_user_are_both_found(alice: User) -> None:
    save(
        alice,
        "Der Schlüssel liegt unter der Matte und nicht im Haus",
        "The spare tyres are in the garage with the bike",
    )
    assert found(alice, "Schlüssel")[0].startswith("Der Schlüssel")
    assert found(alice, "spare tyre")[0].startswith("The spare")


def test_a_single_note_in_another_language_is_found_by_its_own_words(alice: User) -> None:
    save(alice, *(f"The spare key number {number} hangs in the hall" for number in range(80)))
    save(alice, "Зимние машины стоят в гараже у моей сестры")
    hits = search(alice.pk, "Где стоит машина моей сестры, она в гараже?", top_k=1, scope=NOTES)
    assert hits[0].text.startswith("Зимние")
    assert "машина" in hits[0].reason


def test_the_preferred_language_decides(alice: User) -> None:
    Preferences.objects.filter(user=alice).update(language="de")
    save(alice, "Garnelen")
    assert document_terms("Garnelen", "de") == ("de", ["garnel"])
    assert found(alice, "Garnele") == ["Garnelen"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Anna's dog", ["anna", "dog"]),
        ("l'école d’été", ["école", "été"]),
        ("Wi-Fi", ["wi", "fi", "wifi"]),
        ("snake_case", ["snake", "case"]),
        ("ＦＵＬＬ width", ["full", "width"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("3.14 v2", ["3", "14", "v2"]),
        ("foo@bar.com", ["foo", "bar", "com"]),
        ("…!?", []),
    ],
)
def test_words_are_normalised(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_terms_are_distinct_and_bounded() -> None:
    _, terms = document_terms("dog dogs dog's " + "x" * 500)
    assert terms[0] == "dog"
    assert len(terms) == 2
    assert max(map(len, terms)) <= MAX_TERM_CHARS


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Сестра Анна выходит замуж.", "ru"),
        ("Роутер", "ru"),
        ("Кішка спить на дивані.", "uk"),
        ("The word Москва in English text is still English", "en"),
    ],
)
def test_cyrillic_texts_need_no_function_words_to_be_told(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_a_short_russian_note_is_found_in_another_case(alice: User) -> None:
    save(alice, "Сестра Анна выходит замуж.", "Роутер стоит в шкафу.")
    assert found(alice, "свадьба сестры")[0] == "Сестра Анна выходит замуж."


def test_articles_without_end_before_a_word_are_taken_off_too() -> None:
    assert split_words("d'l'eau qu'on") == ["eau", "on"]
    assert split_words("d'" * 50_000 + "eau") == ["eau"]
