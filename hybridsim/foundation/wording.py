"""How figures are formatted wherever a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hybridsim.foundation.units import human_count, human_size, human_time

LAST_NS = (1 << 34) - (1 << 26)  # the last bin of a histogram: everything from 17 s up
NONE = "\N{EN DASH}"
UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
MOST_TIMES = 1000
ANSWERS = {"yes": "Yes.", "no": "No.", "unsure": "Can't say yet."}
PROBABLE = {"yes": "Probably yes.", "no": "Probably not."}
SPANS_NS = 17 * 10**9  # latencies are shorter


def percent(share: float | None) -> str:
    """Return a rounded share: '93%', '0.4%'; 100% and 0% only if exact."""
    if share is None:
        return NONE
    number = round(100 * share, 1)
    if number == 0 < share:
        return "<0.1%"
    if number == 100 and share < 1:
        return ">99.9%"
    return f"{number:.0f}%" if number in (0, 100) or 10 <= number < 99 else f"{number:.1f}%"


def answered(answer: str, is_certain: bool = True) -> str:
    """Return an answer in words: 'Yes.', 'Probably yes.'"""
    return ANSWERS[answer] if is_certain else PROBABLE[answer]


def in_table(answer: str, is_certain: bool = True) -> str:
    """Return an answer as a cell of a table: 'yes', 'probably yes', 'unsure'."""
    return answer if is_certain else PROBABLE[answer][:-1].lower()


def factor(gain: float | None) -> str:
    """Return a gain: with two decimals below 10, and no more digits where a queue grows."""
    if gain is None:
        return NONE
    return f"{gain:.2f}" if gain < 10 else f"{gain:.0f}" if gain <= MOST_TIMES else f">{MOST_TIMES}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things: '1 request', '68,691 requests'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def of_the_mean(share: float) -> str:
    """Return the distance of two distributions: '4.2% of the mean', '13 times the mean'."""
    return f"{percent(share)} of the mean" if share < 1 else f"{times(share)} the mean"


def latency(time_ns: float | None) -> str:
    """Return a latency; beyond the last bin of the histogram it is '> 17 s'."""
    if time_ns is None:
        return NONE
    return "> 17 s" if time_ns == LAST_NS else human_time(time_ns)


def ranged(value_ns: float, low_ns: float, high_ns: float) -> str:
    """Return a latency or a span with its interval: '2.60 ms (2.4 to 2.9)'.

    Without an interval whose ends look like the figure, and beyond the last bin of the histogram.
    """
    if value_ns == LAST_NS:
        return latency(value_ns)
    text = span(value_ns) if value_ns >= SPANS_NS else latency(value_ns)
    _, _, unit = text.partition(" ")
    if unit not in UNITS_NS:
        return f"{text} ({span(low_ns)} to {span(high_ns)})"
    of_unit = UNITS_NS[unit]
    whole = max(math.floor(math.log10(max(value_ns / of_unit, 1e-9))), 0)
    for digits in (1, 2):  # after the first one; the second only where the ends look the same
        low, high = (f"{each / of_unit:,.{max(digits - whole, 0)}f}" for each in (low_ns, high_ns))
        if low != high:
            return f"{text} ({low} to {high})"
    return text


def ranged_size(value_bytes: float, low_bytes: float, high_bytes: float) -> str:
    """Return a size with its interval: '193 GiB (119 to 316 GiB)'."""
    low, high = human_size(low_bytes), human_size(high_bytes)
    number, _, unit = low.partition(" ")
    return f"{human_size(value_bytes)} ({number if high.endswith(f' {unit}') else low} to {high})"


def span(time_ns: float) -> str:
    """Return a time span: '12m', '1h 30m', '8 s'."""
    text = human_time(time_ns)
    for empty in (" 0s", " 0m", " 0h"):
        text = text.removesuffix(empty)
    number, _, unit = text.partition(" ")
    return f"{float(number):g} {unit}" if unit in ("ns", "us", "ms", "s") else text


def recorded(requests: int, span_ns: float) -> list[str]:
    """Return how many requests arrived in which time: ['68.7 k requests', '25 s']."""
    number = f"{human_count(requests)} request{'s' * (requests != 1)}"
    return [number, "unknown time" if requests > 1 and not span_ns else span(span_ns)]


def times(ratio: float) -> str:
    """Return a ratio: '7.0 times', '23 times', 'over 1,000 times'."""
    if ratio >= 1000:
        return "over 1,000 times"
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:.0f} times"


SMALLEST = 0.0001  # smallest amount printed as a number, in units of the currency


def money(amount: float | None, currency: str) -> str:
    """Return an amount of money: '$1,312', 'EUR 0.25', '<$0.0001'."""
    if amount is None:
        return NONE
    figure = f"{amount:,.0f}" if amount >= 100 else f"{amount:.2f}"
    if 0 < amount < 0.1:
        figure = f"{max(amount, SMALLEST):.2g}"
    below = "<" if 0 < amount < SMALLEST else ""
    return f"{below}${figure}" if currency == "USD" else f"{below}{currency} {figure}"


def ranged_money(amount: float, ends: Sequence[float | None] | None, currency: str) -> str:
    """Return an amount with its interval: '$1,312 ($1,200 to $1,400)', '$12 ($9.10 or more)'."""
    text = money(amount, currency)
    if ends is None or ends[0] is None:
        return text
    low, high = ends
    if high is None:
        return f"{text} ({money(low, currency)} or more)"
    return f"{text} ({money(low, currency)} to {money(high, currency)})"


def lasting(years: float) -> str:
    """Return a drive's life in years or months; beyond 30 years the number has no meaning."""
    if years >= 30:
        return "more than 30 years"
    return f"{years:.1f} years" if years >= 1 else f"{years * 12:.1f} months"
