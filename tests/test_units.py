"""Units: exact parsing of user input, and formatting."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.foundation import units

WHOLE = st.integers(0, units.LARGEST)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("64KiB", 65_536),
        ("64 KiB", 65_536),
        ("64kib", 65_536),
        ("4k", 4096),
        ("4K", 4096),
        ("1m", 2**20),
        ("2g", 2**31),
        ("1t", 2**40),
        ("32GB", 32 * 10**9),
        ("146.8GB", 146_800_000_000),
        ("4kB", 4000),
        ("1.2PB", 1_200_000_000_000_000),
        ("1.5KiB", 1536),
        ("1_000B", 1000),
        ("512", 512),
        (512, 512),
        ("0", 0),
    ],
)
def test_sizes_are_parsed_exactly(text, size_bytes):
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("8.5ms", 8_500_000),
        ("552.5us", 552_500),
        ("20 µs", 20_000),
        ("7ns", 7),
        ("1m", 60 * 10**9),
        ("1h", 3600 * 10**9),
        (0, 0),
    ],
)
def test_times_are_parsed_exactly(text, time_ns):
    assert units.parse_time(text) == time_ns


def test_rates_and_shares_are_parsed_exactly():
    assert units.parse_rate("204MB/s") == 204_000_000
    assert units.parse_rate("64KiB/s") == 65_536
    assert units.parse_percent("10%") == Fraction(1, 10)
    assert units.parse_percent("12.5 %") == Fraction(1, 8)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_size, "64uz", "unknown size unit 'uz'"),
        (units.parse_size, "12QiB", "unknown size unit 'QiB': choose from B, k, m"),
        (units.parse_size, "64KiBB", "did you mean '64KiB'?"),
        (units.parse_size, "much", "'much' is not a size: write for example 64KiB"),
        (units.parse_size, "-1", "'-1' is not a size"),
        (units.parse_size, "", "'' is not a size"),
        (units.parse_size, True, "True is not a size"),
        (units.parse_size, 1.5, "1.5 is not a size"),
        (units.parse_size, -5, "out of range"),
        (units.parse_size, "0.3B", "'0.3B' is not a whole number of bytes"),
        (units.parse_size, "9999999t", "out of range: 0 to 2^63 - 1 bytes"),
        (units.parse_time, 5, "write '5ms', '5us' or '5s'"),
        (units.parse_time, "5", "a time needs a unit"),
        (units.parse_time, "5msec", "did you mean '5ms'?"),
        (units.parse_time, "5 MS", "did you mean '5ms'?"),
        (units.parse_time, "0.5ns", "not a whole number of nanoseconds"),
        (units.parse_rate, "5MB", "did you mean '5MB/s'?"),
        (units.parse_rate, "5", "a rate needs a unit"),
        (units.parse_percent, "10", "not a percentage"),
    ],
)
def test_the_error_of_an_invalid_value_shows_a_valid_one(parse, text, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        parse(text)
    assert message in str(error.value)


@given(WHOLE)
def test_written_sizes_times_and_rates_read_back(number):
    assert units.parse_size(units.format_size(number)) == number
    assert units.parse_time(units.format_time(number)) == number
    assert units.parse_rate(units.format_rate(number)) == number


@given(st.integers(0, 999), st.sampled_from(sorted(units.SIZES)))
def test_every_size_unit_is_exact(count, unit):
    assert units.parse_size(f"{count}{unit}") == count * units.SIZES[unit]


@given(st.text())
def test_every_text_is_parsed_or_refused(text):
    for parse in (units.parse_size, units.parse_time, units.parse_rate, units.parse_percent):
        with suppress(ValueError):
            parse(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(65_536, "64KiB"), (32 * 10**9, "32GB"), (146_800_000_000, "146.8GB"), (5, "5B"), (0, "0B")],
)
def test_sizes_are_formatted_with_suitable_units(number, text):
    assert units.format_size(number) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.human_size(46 * 2**30), "46.0 GiB"),
        (units.human_size(512), "512 B"),
        (units.human_size(1023.9 * 1024), "1.00 MiB"),
        (units.human_count(41_200_000), "41.2 M"),
        (units.human_count(954), "954"),
        (units.human_rate(71_500_000), "71.5 MB/s"),
        (units.human_time(1_400_000), "1.40 ms"),
        (units.human_time(88_000), "88.0 us"),
        (units.human_time(999_950), "1.00 ms"),
        (units.human_time(150 * 10**9), "2m 30s"),
        (units.human_time(6 * 3600 * 10**9 + 12 * 60 * 10**9), "6h 12m"),
        (units.human_time(50 * 3600 * 10**9), "2d 2h"),
    ],
)
def test_numbers_are_formatted_for_reading(text, expected):
    assert text == expected
