"""`hybridsim explain`: the meaning of a printed word or figure."""

from __future__ import annotations

import textwrap

import click

from hybridsim.foundation.errors import UsageError


@click.command(
    epilog="""\b
Examples:
  hybridsim explain
  hybridsim explain warm-up
  hybridsim explain not hot enough
"""
)
@click.argument("term", nargs=-1)
def explain(term: tuple[str, ...]) -> None:
    """Explain TERM: any word or figure that a report prints.

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
    if entry is None:
        raise UsageError(_unknown(word))
    click.secho(entry[0], bold=True)
    click.echo(click.wrap_text(entry[1], 80, initial_indent="  ", subsequent_indent="  "))


def _unknown(word: str) -> str:
    from hybridsim.foundation.explain import known_words
    from hybridsim.foundation.suggest import nearest

    near = nearest(word, known_words())
    hint = f"did you mean '{near}'?" if near else "`hybridsim explain` lists all terms"
    return f"no entry for '{word}': {hint}"
