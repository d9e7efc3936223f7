"""`python -m chaos --rounds 300 --seed 7`: the crash test, with a summary as its last line."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from chaos.play import Played, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description="Kill Muster at random moments.")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder even if all is well")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="muster-chaos-"))
    # Where one can watch, without being in the way of who reads the report.
    played = play(asked.rounds, asked.seed, folder, lambda line: sys.stderr.write(f"{line}\n"))
    if played.passed and not asked.keep:
        shutil.rmtree(folder)
    else:
        sys.stdout.write(f"everything is kept in {folder}\n")
    sys.stdout.writelines(f"{line}\n" for line in report(played))
    return 0 if played.passed else 1


def report(played: Played) -> Iterator[str]:
    """The table, what was broken, and the summary."""
    answers, found = played.answers, played.verdict
    for kind, times in sorted(played.rounds.items()):
        yield f"{kind:<22}{times:>8,} rounds"
    yield f"{'asked and lost':<22}{len(answers.lost):>8,} answers"
    yield f"{'refused':<22}{len(answers.refused):>8,} jobs"
    for status, texts in sorted(answers.troubles.items()):
        yield f"{f'answered {status}':<22}{len(texts):>8,} times, such as: {texts[-1]}"
    yield f"{'changes of mind':<22}{answers.acts:>8,}"
    yield f"{'lasted':<22}{played.lasted_s:>8,.0f} s"
    if not played.has_small_disk:
        yield "no round with a full disk: mounting a small one needs root"
    yield from played.mishaps
    yield from found.broken
    wrong = len(found.wrong) + len(played.mishaps)
    yield (
        f"chaos: {played.rounds.total()} rounds, seed {played.seed}: "
        f"{found.acknowledged:,} jobs acknowledged, {found.ended:,} ended once, "
        f"{len(found.lost)} lost, {len(found.doubled)} doubled, {len(found.leaked)} leaked, "
        f"{len(found.zombies)} zombies, {wrong} wrong: {'PASS' if played.passed else 'FAIL'}"
    )


if __name__ == "__main__":
    sys.exit(main())
