"""`hybridsim explain`: the meaning of a printed word or figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from hybridsim.cli.arguments import argument, command
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import nearest


@command(
    "hybridsim explain",
    "hybridsim explain warm-up",
    "hybridsim explain not hot enough",
    "hybridsim explain cache.write_budget",
)
def explain(term: tuple[str, ...] = argument(nargs=-1)) -> None:
    """Explain TERM: any word or figure that a report prints, or a key of a scenario.

    Without TERM, list all terms.
    """
    from hybridsim.foundation.explain import TERMS
    from hybridsim.foundation.explain import explain as entry_of

    if not term:
        words = ", ".join(sorted(TERMS, key=str.casefold))
        click.echo(textwrap.fill(words, 80, break_on_hyphens=False))
        click.echo("\nhybridsim explain TERM explains one of them.")
        return
    word = " ".join(term)
    entry = entry_of(word)
    keys = list(_keys(word)) if entry is None or "_" in word else []
    if entry is None and not keys:
        raise UsageError(_unknown(word))
    if entry is not None:
        click.secho(entry[0], bold=True)
        click.echo(_indented(entry[1]))
    for title, text in keys:
        click.secho(title, bold=True)
        click.echo(_indented(text))


def _indented(text: str) -> str:
    return click.wrap_text(text, 80, initial_indent="  ", subsequent_indent="  ")


def _keys(word: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a scenario with this name: where they stand, and what they take."""
    from hybridsim.scenario.key_help import named

    for tables, key in named(word):
        places = ", ".join(".".join([*map(str, table.path), key.name]) for table in tables)
        kinds = " or ".join(f'"{kind}"' for kind in tables[0].kinds)
        value = f"A key: {key.value}"
        if key.default is None:
            value += "; needed"
        elif key.default:
            value += f"; default {key.default}"
        title = f"{places} ({kinds})" if kinds else places
        sentence = f"{key.text[:1].upper()}{key.text[1:]}." if key.text else ""
        yield title, f"{value}. {sentence}"


def _unknown(word: str) -> str:
    from hybridsim.foundation.explain import known_words
    from hybridsim.scenario.key_help import names

    near = nearest(word, [*known_words(), *names()])
    hint = f"did you mean '{near}'?" if near else "`hybridsim explain` lists all terms"
    return f"no entry for '{word}': {hint}"
