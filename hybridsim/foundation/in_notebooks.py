"""How objects look in notebooks: a small table, escaped; their rows as a pandas frame; keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from hybridsim.foundation.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
else:
    DataFrame = Any  # pandas is imported when a frame is made

Function = TypeVar("Function", bound=Callable[..., Any])


def with_keywords(keys: type) -> Callable[[Function], Function]:
    """Return a decorator: what a notebook completes for `**options` are the keys of a TypedDict.

    Notebooks complete the names of a signature, and do not look into `Unpack`, as editors do.
    """

    def named(function: Function) -> Function:
        plain = inspect.signature(function)
        known = [each for each in plain.parameters.values() if each.kind != each.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=...,
                annotation=getattr(of, "__forward_arg__", of),
            )
            for name, of in keys.__annotations__.items()
        ]
        function.__signature__ = plain.replace(parameters=[*known, *more])  # type: ignore[attr-defined]
        return function

    return named


def table_html(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of names and values as an HTML table with a caption."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
        f"<tbody>{cells}</tbody></table>"
    )


@contextmanager
def bar(what: str, is_shown: bool) -> Iterator[Callable[[int, int | None], None]]:
    """Yield what shows on a bar how many of how many are done; in notebooks and on terminals."""
    if not is_shown:
        yield lambda done, of: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


def frame_of(
    rows: Iterable[Mapping[str, Any]] | Mapping[str, Any], columns: Sequence[str] | None = None
) -> DataFrame:
    """Return rows, or columns by name, as a pandas frame; unknown numbers become NaN.

    `columns` are those of a frame without rows.  Raises UsageError without pandas.
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise UsageError("frames need pandas: pip install 'hybridsim[notebooks]'") from None
    if isinstance(rows, Mapping):
        return DataFrame(rows)
    result = DataFrame(list(rows), columns=None if columns is None else list(columns))
    for name in result.columns:
        values = [each for each in result[name] if each is not None]
        is_number = all(isinstance(each, int | float) and not isinstance(each, bool)
                        for each in values)  # fmt: skip
        if values and len(values) < len(result) and is_number:
            result[name] = result[name].astype(float)
    return result
