"""Costs of texts made to take long, in the regular expressions and parsers that meet text from outside.

Each reads adversarial texts of n, 2n and 4n characters, 4n being the longest that reaches it; the baseline is ordinary prose of
4n characters. Processor time, the least of three calls.
"""

import math
import signal
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from apps.core.errors import IzzyError
from benchmarks.report import Report

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ORDINARY = (
    "The user lives in Porto, works on bridges (since 2019) and likes tea; see https://example.org/a-b. "
)
COMMON = (
    "a", "A", "1", " ", "\t", "\n", ".", ",", "-", "_", "'", '"', "`", "/", "\\", "<", ">", "(", ")", "[", "]", "{", "}", "*", "#", "|", "@", ":",
    "&", "=", "+", "~", "!", "?", "a ", "a.", "a\n", " a", "1 ", "\n ", "é", "’", "“", "日", "a\u0301", "\u2003", "😀", ORDINARY,
)  # fmt: skip
TRIED = 4  # texts of each that are measured: those that cost most at n characters
CALLS = 3
LONG_ENOUGH = (
    0.05  # seconds that a call is repeated: the clock of processor time may go in steps of a hundredth
)
PATIENCE = 5.0  # seconds of processor time for one call
MOST_GROWTH = 1.3  # n log n doubled twice comes to 1.1 to 1.2; the rest is noise of the machine
UNMEASURABLE = 0.002  # seconds at 4n characters below which growth is chance


@dataclass(frozen=True, slots=True)
class Subject:
    """`call` reads a text of at most `limit` characters; `units` are repeated beside those that everybody gets, each
    between `before` and `after`."""

    name: str
    call: Callable[[str], object]
    limit: int
    units: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


class _TooLong(Exception):
    pass


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in their name")


def run(options: dict[str, Any]) -> Report:
    report = Report("hostile", settings={"seconds of patience": PATIENCE})
    section = report.section(
        "Milliseconds of processor time",
        ["what", "4n", "text", "n", "2n ", "4n ", "exponent", "ordinary, 4n"],
    )
    grown, slow = [], []
    for subject in (each for each in subjects() if options["only"] in each.name):
        text, times = _worst(subject)
        exponent = _exponent(times)
        ordinary = _cost(subject, ORDINARY, subject.limit)
        section.add(
            subject.name,
            subject.limit,
            repr(text)[:24],
            *(each * 1000 for each in times),
            exponent,
            ordinary * 1000,
        )
        grown += [subject.name] if exponent > MOST_GROWTH else []
        slow += [subject.name] if math.isinf(times[-1]) else []
    report.aims[f"none grows faster than n log n{_named(grown)}"] = not grown
    report.aims[f"none takes longer than {PATIENCE:.0f} s{_named(slow)}"] = not slow
    return report


def _named(names: list[str]) -> str:
    return f" (but {', '.join(names)})" if names else ""


def _worst(subject: Subject) -> tuple[str, list[float]]:
    """The text that costs most at 4n characters of those that cost most at n, with its costs at n, 2n and 4n."""
    sizes = [subject.limit // 4, subject.limit // 2, subject.limit]
    units = dict.fromkeys((*COMMON, *subject.units))
    dear = sorted(units, key=lambda unit: _cost(subject, unit, sizes[0]), reverse=True)[:TRIED]
    found = {unit: [_cost(subject, unit, size, CALLS) for size in sizes] for unit in dear}
    worst = max(found, key=lambda unit: (_exponent(found[unit]) > MOST_GROWTH, found[unit][-1]))
    return worst, found[worst]


def _exponent(times: list[float]) -> float:
    """1 where cost grows as the text does, 2 where by its square; 0 for what is too quick to tell."""
    if times[-1] < UNMEASURABLE:
        return 0.0
    return math.log(times[-1] / max(times[0], 1e-6), 4)


def _cost(subject: Subject, unit: str, size: int, calls: int = 1) -> float:
    """Seconds of processor time; infinite beyond `PATIENCE`."""
    room = size - len(subject.before) - len(subject.after)
    text = subject.before + unit * (room // len(unit)) + subject.after
    least = math.inf
    for _ in range(calls):
        began, times, spent = time.process_time(), 0, 0.0
        while times == 0 or (calls > 1 and spent < LONG_ENOUGH and times < 500):
            try:
                with _patience():
                    subject.call(text)
            except _TooLong:
                return math.inf
            times, spent = times + 1, time.process_time() - began
        least = min(least, spent / times)
    return least


@contextmanager
def _patience() -> Iterator[None]:
    def ended(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def subjects() -> list[Subject]:
    """All of them, in the order of the packages."""
    return [*_core(), *_search(), *_agent(), *_offline(), *_memory(), *_capabilities(), *_chat()]


def _refusing(call: Callable[[str], object]) -> Callable[[str], object]:
    from apps.agent.tools.base import ToolFailure

    def read(text: str) -> None:
        with suppress(IzzyError, ToolFailure, ValueError):
            call(text)

    return read


# fmt: off

def _core() -> list[Subject]:
    from apps.core.http.addresses import canonical_host
    from apps.core.http.drf import parse_json
    from apps.core.purging.trace import Fragments
    from apps.core.text import chunk_text, clean_text, estimate_tokens

    def purged(text: str) -> object:
        return Fragments.of(text[:200], frozenset()).match(text)
    nested = ('[', '{"a":', '"\\u0000', '1e9,', '"a",', '\\')
    return [
        Subject('edge: text of a field', _refusing(lambda text: clean_text(text, field='a', max_chars=10 ** 9)), 100000),
        Subject('edge: JSON of a request', _refusing(lambda text: parse_json(text.encode())), 5000000, nested),
        Subject('edge: JSON, one text in it', _refusing(lambda text: parse_json(text.encode())), 5000000, ('\\u0041', '\\'), '["', '"]'),
        Subject('tokens estimated', estimate_tokens, 100000),
        Subject('text cut into passages', chunk_text, 100000, ('.”', '. ', '。', 'a. ', '\n\n')),
        Subject('host of an address', _refusing(canonical_host), 4000, ('1.', 'a.', 'xn--', 'é.', '0x')),
        Subject('purge: runs and words', purged, 100000, ('ab ', 'the user ')),
    ]


def _search() -> list[Subject]:
    from apps.search.proactive.contextual_query import contextual_query
    from apps.search.ranking.query import MAX_QUERY_CHARS
    from apps.search.selectors import plain
    from apps.search.text.analysis import detect_language, document_terms, split_words
    from apps.search.text.dates import named_dates
    first, last = (datetime(1999, 1, 1, tzinfo=UTC), NOW)
    dates = ('1999 ', 'jan 5 ', '5 jan ', '1 day ago ', '2020-01-01 ', '19.01.2024 ', 'monday ', 'may ', '1/1/2024 ', 'march 1999 ')
    words = ('a-', "a'", "l'", 'é-', '日本', 'á', 'ａ', 'ﷺ', 'ก')
    return [
        Subject('words of a text', split_words, 100000, words),
        Subject('stems of a text', document_terms, 100000, words),
        Subject('language of a text', detect_language, 100000, words),
        Subject('dates of a question', lambda text: named_dates(text, now=NOW, first=first, last=last), MAX_QUERY_CHARS, dates),
        Subject('dates: years, then days', lambda text: named_dates('1999 ' * (len(text) // 11) + 'jan 5 ' * (len(text) // 11), now=NOW, first=first, last=last), MAX_QUERY_CHARS),
        Subject('what a message is about', lambda text: contextual_query([text, text, text], ['en']), 100000, words),
        Subject('text compared without case', plain, 100000, ('ß', 'İ')),
    ]


def _agent() -> list[Subject]:
    from apps.agent.tools.results import Scrubber, quoted, result_json
    from apps.agent.web.addresses import checked_url
    from apps.agent.web.engines import _plain
    from apps.agent.web.fetching import kind_of
    from apps.agent.web.reader.documents import _title, decoded, whole_text
    from apps.core.text import storable
    scrubber = Scrubber(['correct horse battery staple', 'aaaaaaaaaaaaaaab', '0123456789abcdef'])
    keys = ('sk-', '-----BEGIN PRIVATE KEY-----', '-----BEGIN ', '://a:', '://', 'eyJ' + 'a' * 9 + '.', 'SG.' + 'a' * 17, 'a:@', 'izzy_', 'AKIA', 'A ')
    html = ('<', '<a', '<a ', '<p>', '<!--', '<script>', '</p>', '<title>', '<title', '<meta ', '&amp', '<div>', '<td>', '<a href=x>')
    return [
        Subject('secrets taken out', scrubber.text, 1000000, keys),
        Subject('result of a tool made storable', storable, 1000000),
        Subject('result of a tool as JSON', result_json, 1000000, ('[', '{"a":')),
        Subject('words quoted to the model', lambda text: quoted('page', text), 100000, ('<', '</', '< /', '<page', '< ')),
        Subject('address of a page', _refusing(checked_url), 4000, ('http://', '://', 'a:', '%', '@', '/..', 'xn--é.')),
        Subject('hit of a search engine', _plain, 2000000, html),
        Subject('page: kind', lambda text: kind_of(text.encode()), 5000000, html),
        Subject('page: character set', lambda text: decoded(text.encode(), '', meta=True), 5000000, (*html, '<meta charset=', '<meta a=')),
        Subject('page: title', _title, 5000000, html),
        Subject('page: whole text (reading process)', lambda text: whole_text(text, 'https://example.org/'), 1000000, html),
    ]


def _offline() -> list[Subject]:
    from apps.agent.offline.capabilities import input_from
    from apps.agent.offline.dialogue import read_dialogue
    from apps.agent.offline.intents import MAX_CHARS, file_command, intent_of
    from apps.agent.offline.notes import corrected
    from apps.agent.offline.rehearsals import named, requested_tool, usage_of
    from apps.agent.offline.wording import Note, best_matches, echoed, note_text, to_you
    schema: dict[str, Any] = {'type': 'object', 'properties': {'sides': {'type': 'integer'}, 'the_count': {'type': 'array'}}}
    asked = ('please ', 'hey ', 'izzy ', 'remember ', 'forget ', 'what ', 'with ', ' to ', ' in ', 'change a to ', 'run a ', 'a_', 'a b ', 'tell me ', 'my a is ', 'actually ', 'think hard ', 'about ', 'no, ', 'list ', 'you know ', 'of ', 'do you know ', 'any more ', 'i ', ', ')
    files = ('/memories', '/memories/a ', ' in /memories', 'to the ', 'a new file ', ' with ', ' by ', 'replace a ', 'line 1 ', 'write ', 'the ', '`', 'delete a ')
    said = ('the user ', 'the user is ', 'my ', 'me ', 'i ', "I'm ", 'and ', 'is ', 'also ', "it's ", 'Dr. ', ', and ', 'likes ')

    def words_said(text: str) -> object:
        return read_dialogue({'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': f'<context>\n{text}'}, {'type': 'text', 'text': text}]}]})
    subjects = [Subject(f'offline: what is wanted {before!r}', intent_of, MAX_CHARS, asked, before) for before in ('', 'remember ', 'change ', 'run ', 'think hard ', 'my ', 'what do you know ', 'i ', 'forget ')]
    subjects += [Subject(f'offline: file command {before!r}', file_command, MAX_CHARS, files, before, after) for before, after in (('', ''), ('replace ', ' in /memories'), ('create /memories/a with ', ''), ('insert ', ' in /memories'), ('delete ', ' /memories'), ('write ', ' to /memories'), ('', ' /memories'))]
    return [
        *subjects,
        Subject('offline: tool wanted', requested_tool, MAX_CHARS, ('build ', 'me ', 'a ', 'tool '), 'build me a '),
        Subject('offline: tool used', usage_of, MAX_CHARS, ('roll ', '1', 'convert 1 ', 'to ', ' in '), 'convert 1 '),
        Subject('offline: tool named', named, MAX_CHARS, ('use ', 'a'), 'use '),
        Subject('offline: input of a tool', lambda text: input_from(text, schema), MAX_CHARS, ('sides ', 'the ', 'the count ', ' and ', ' is ', 'sides = 1, '), 'sides 1 '),
        Subject('offline: note in the third person', note_text, MAX_CHARS, said),
        Subject('offline: note read back', to_you, MAX_CHARS, said),
        Subject('offline: words echoed', echoed, MAX_CHARS, said),
        Subject('offline: note corrected', lambda text: corrected(text, "the user's sister is Ada"), MAX_CHARS, said),
        Subject('offline: correction of a note', lambda text: corrected("The user's sister is Ada.", text), MAX_CHARS, said),
        Subject('offline: notes that are meant', lambda text: best_matches(text, [Note('a', text, 0)]), MAX_CHARS, ("a'", 'ab ')),
        Subject('offline: request taken apart', words_said, 100000, ('- [note-', '- [note-00000000-0000-0000-0000-000000000000', '\n- [note-0', ']\n')),
    ]


def _memory() -> list[Subject]:

    from apps.agent.web.addresses import addresses_in
    from apps.core.addressing import addressed
    from apps.core.quotes import split_quotes
    from apps.memory.files.texts import clean_path, numbered, replaced
    from apps.memory.notes.history import text_diff
    from apps.memory.prompts import json_in
    from apps.memory.similarity import says_the_same
    from apps.memory.trust import is_own_sentence, looks_sensitive
    quotes = ('```', '```\n', '~~~\na\n', '"""', "'''", '<doc>', '</doc>', '<doc ', '<doc\n', '<', '> a\n', '\n>', '| \n', '“', '”', '„', '«', '‘', '"', 'article ', 'says ', 'email: ', 'e-mail\n', 'here is the article:\n', 'summarize ', 'translate\n', 'fass a ', 'resum', 'from: a\n', 'On a ', 'on a a wrote ', '--original', '# a\n', 'the text: ')
    claims = ('not ', "n't ", 'remember ', 'never to ', 'forget ', 'and ', 'not a ', 'A ', 'a.b', 'a@', '://', '12.', '1-', '2020-', '1999/', 'merk ', 'do you ', 'vergiss a ', ', ', "A'")
    secrets = ('1 ', '12', 'AB12 ', 'AAAA ', 'pin ', 'password ', 'GB12', '1-', '0000 ', 'bic', '0')
    return [
        Subject('note as its owner reads it', addressed, 20000, ('the user ', "the user's ", 'that the user ', 'The user ', '. ', '\n', 'the userx ')),
        Subject('quotes of a message', split_quotes, 100000, quotes),
        Subject('addresses in a page', lambda text: addresses_in([text]), 100000, ('a.b ', 'a.b/)) ', '((a.', '://', 'a.')),
        Subject("trust: a sentence of the user's", lambda text: is_own_sentence(text[:1000], [text]), 100000, (*claims, 'I am ', '. ', "i'm ", 'remember that ', '\n \n')),
        Subject('trust: sensitive', looks_sensitive, 100000, secrets),
        Subject('capture: the same', lambda text: says_the_same(text, text + ' x', 0.9), 20000, claims),
        Subject('capture: JSON of a model', json_in, 100000, ('[', '{', ']', '}', '{"a":1},', '[{'), '['),
        Subject('file: path', _refusing(clean_path), 500, ('%25', '%2e', '../', '/ ', '/.', '/ .. '), '/memories/'),
        Subject('file: part replaced', _refusing(lambda text: replaced('/memories/a', text, text[:len(text) // 2] + '!', 'b')), 100000, ('ab', 'a\n')),
        Subject('file: many places found', _refusing(lambda text: replaced('/memories/a', text, text[:len(text) // 2], 'b')), 100000, ('ab', 'a\n')),
        Subject('file: lines numbered', lambda text: numbered('/memories/a', text, None), 100000, ('\n',)),
        Subject('history: what changed', lambda text: text_diff(text, text[::-1] + ' x'), 100000, ('a b ', 'a\n', 'a. ', '1 ')),
    ]


def _capabilities() -> list[Subject]:
    from apps.agent.tools.patterns import MAX_MATCHED_CHARS, MAX_PATTERN_CHARS, matcher, pattern_problem
    from apps.agent.tools.schema import schema_error
    from apps.capabilities.catalog.drafts import (
        MAX_MAIN_CHARS,
        clean_host,
        clean_main,
        clean_secret_name,
    )
    from apps.capabilities.sandbox.requirements import MAX_BYTES, parse_requirements
    listed: dict[str, Any] = {'type': 'object', 'properties': {'a': {'type': 'array', 'uniqueItems': True}, 'b': {'description': ORDINARY * 9}}}
    lines = ('a', ' ', 'a;', 'a[', 'a,', 'a==1,', "a; os_name=='x' and ", '(', '#', ' #', '\n', 'a\n', 'a==1.', 'a-', '>=1,', "'", '\t')
    groups = ('(a+)+', '(?i:ab|AB)*', 'a?', '(a|a)*', '.*a', '\\w{9}', '[^\\W\\d]', '(?:', '[', '\\b\\w', 'a{99}', '\\p{L}', '(a*)*', '{', '\\u0061')

    def forgets(pattern: str) -> object:
        matcher.cache_clear()
        return pattern_problem(pattern)
    return [
        Subject('requirements: one line', _refusing(parse_requirements), 300, lines, 'a'),
        Subject('requirements: the file', _refusing(parse_requirements), MAX_BYTES, lines),
        Subject('schema: a pattern read', forgets, MAX_PATTERN_CHARS, groups),
        Subject('schema: ^(?i:ab|AB)*$', matcher('^(?i:ab|AB)*$'), MAX_MATCHED_CHARS, ('ab', 'AB')),
        Subject('schema: (?:a?){900}b', matcher('(?:a?){900}b'), MAX_MATCHED_CHARS, ('ab',)),
        Subject('schema: input of many items', lambda text: schema_error(listed, {'a': list(text)}), 20000),
        Subject('name of a secret', _refusing(clean_secret_name), 4000),
        Subject('host of a permission', _refusing(clean_host), 4000, ('a.', 'a-', '1.', 'é.')),
        Subject('main.py read as Python', _refusing(clean_main), MAX_MAIN_CHARS, ('x=1\n', '(', '[', 'a.', '-', 'a if ', "f'{", 'x=[\n', '1+', 'not ', 'lambda:', 'if 1:\n ', 'a,', "''", '{0:')),
    ]


def _chat() -> list[Subject]:
    from apps.chat.conversations.markdown import LiveRenderer, blocks
    from apps.chat.prompt import context_block
    from apps.chat.summary.selectors import _TAG, _first
    from apps.chat.titles import clean_title, heuristic_title
    from apps.core.unmarked import unmarked
    marks = ('*', '**a ', '*a ', '_a', '[', '](', '![', '[a](', '[a]: ', '<', '<a', '`', '`a', '``a`', '> ', '>', '- ', '1. ', '# ', '|', '|-|\n', '\\', '&', '&#', '~~', '~~a ', 'http://a.b ', 'a.b ', 'a@', '//', 'www.', 'a://', '\n', '  \n', '\t', '```\n', '```a\n', '    a\n', '[[', ']]', '<!--', '(', 'a\n> ', '- - ', '* * ', '\n\n', '|a', '[x][', '***a', '_*')

    def live(text: str) -> None:
        renderer = LiveRenderer()
        for start in range(0, len(text), max(len(text) // 20, 1)):
            renderer.feed(text[start:start + max(len(text) // 20, 1)])
            renderer.render()
        renderer.finish()

    def highlighted(language: str) -> Subject:
        code = ('(', '"', "'", '/*', '//', '{', '<', '<!--', '#', '\\', 'a', 'a(', '/', "f'{", '=', '$', '@', '0', '`', '"""', '${', 'a ', 'a=', 'a.', '::', '\n ', '\\\n')
        return Subject(f'code coloured: {language}', lambda text: blocks(f'```{language}\n{text}\n```'), 50000, code)
    languages = ('python', 'javascript', 'typescript', 'html', 'css', 'bash', 'java', 'c', 'cpp', 'csharp', 'ruby', 'amdgpu')
    return [
        Subject('Markdown', lambda text: blocks(text), 100000, marks),
        Subject('Markdown as it comes (20 pieces)', live, 100000, marks),
        *map(highlighted, languages),
        Subject('title from words', heuristic_title, 100000, ('https://', 'http', 'hi ', 'hi, ', '. ', '*', 'a.')),
        Subject('title from a model', clean_title, 20000, ('https://', '\n', '*')),
        Subject('Markdown taken out', unmarked, 100000, ('_', '_a', ' _a', '- ', '* [ ] ', '- [', '[a](', '![', '===', '*', '**', '*a', '**a', '`', '|', '-', ' ', '|-', '---', '# ', '```', '*a*', 'a*', ' |', ': ', '\n|', '\n ')),
        Subject('summary: first sentence', lambda text: _first(text, 200), 100000, ('. ', '*', '.”')),
        Subject('summary: marks taken out', lambda text: _TAG.sub('', text), 100000, ('<', '</', '< ', '<message', '<message ', '<tool')),
        Subject('context: marks taken out', lambda text: context_block(now=NOW, time_zone='UTC', memories=text), 100000, ('</', '</ ', '</context', '</context ', '<')),
    ]
# fmt: on
