"""Small texts: widths on a screen, amounts, and names that cannot steer a terminal."""

from collections.abc import Iterable, Sequence


def width_of(text: str) -> int:
    """How many places the text takes on a screen."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415  only for such texts

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def shortened(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it is wider than this."""
    if width_of(text) <= width:
        return text
    kept = text[: max(width - 1, 0)]
    while kept and width_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def clean(text: str) -> str:
    """The text with everything replaced that a terminal would take as a command."""
    return "".join(each if each.isprintable() else "�" for each in text)


def clean_lines(text: str, kept: str = "\n\t") -> str:
    """Like `clean`, but line breaks and tabs stay."""
    return "".join(each if each.isprintable() or each in kept else "�" for each in text)


def number(amount: float) -> str:
    """`4`, `0.5`, `1.142`: no more digits than there are."""
    return f"{amount:.3f}".rstrip("0").rstrip(".") if amount % 1 else str(int(amount))


def memory(mib: float) -> str:
    """`16G`, `1.5T`, `512M`; nothing is `0`."""
    for unit, size in (("T", 1_048_576), ("G", 1_024)):
        if mib >= size:
            return f"{round(mib / size, 1):g}{unit}"
    return f"{mib:g}M" if mib else "0"


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 job`, `3 jobs`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def jobs_text(ids: Sequence[object]) -> str:
    """`job 17`, `jobs 17, 18`; nothing for none."""
    return f"{'job' if len(ids) == 1 else 'jobs'} {listed(ids)}" if ids else ""


def listed(items: Iterable[object], *, most: int = 12) -> str:
    """`1, 2, 3 and 9 more`."""
    texts = [str(item) for item in items]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} and {len(texts) - most} more"
