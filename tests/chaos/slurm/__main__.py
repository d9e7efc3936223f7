"""`python -m chaos.slurm --rounds 100 --seed 7`: faults of a real Slurm behind a real Muster.

With `--keep` the figures go into `bench/results`, after each of the `--runs`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from bench import report as measured
from chaos.slurm.play import Played, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos.slurm", description="Kill Slurm and Muster.")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1, help="on a new Slurm each, by the next seed")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    all_played: list[Played] = []
    for seed in range(asked.seed, asked.seed + asked.runs):
        played = play(asked.rounds, seed, lambda line: sys.stderr.write(f"{line}\n"))
        all_played.append(played)
        sys.stdout.writelines(f"{line}\n" for line in report(played))
        sys.stdout.flush()
        if asked.keep:
            keep(all_played)
    return 0 if all(each.passed for each in all_played) else 1


def keep(all_played: Sequence[Played]) -> None:
    """The figures of all runs, and each kind of round."""
    rounds = sum((each.rounds for each in all_played), Counter[str]())
    figures = {
        "rounds": rounds.total(),
        "jobs acknowledged": sum(each.verdict.acknowledged for each in all_played),
        "jobs ended once": sum(each.verdict.ended for each in all_played),
        "jobs lost": sum(len(each.verdict.lost) for each in all_played),
        "jobs doubled": sum(len(each.verdict.doubled) for each in all_played),
        "jobs told wrong": sum(len(each.verdict.wrong) for each in all_played),
        "jobs of others harmed": sum(len(each.harmed) for each in all_played),
        "attempts": sum(each.attempts for each in all_played),
        "attempts that Slurm began again": sum(each.again for each in all_played),
        "seconds": round(sum(each.lasted_s for each in all_played)),
        "seeds": f"{all_played[0].seed} to {all_played[-1].seed}",
    }
    table = [{"struck": kind, "rounds": times} for kind, times in sorted(rounds.items())]
    measured.report("chaos-slurm", figures, table)


def report(played: Played) -> Iterator[str]:
    """The table, what was broken, and the summary."""
    found = played.verdict
    for kind, times in sorted(played.rounds.items()):
        yield f"{kind:<22}{times:>8,} rounds"
    yield f"{'attempts':<22}{played.attempts:>8,}"
    yield f"{'begun again by Slurm':<22}{played.again:>8,} attempts"
    yield f"{'lasted':<22}{played.lasted_s:>8,.0f} s"
    yield from found.broken
    yield from played.harmed
    yield (
        f"chaos with Slurm: {played.rounds.total()} rounds, seed {played.seed}: "
        f"{found.acknowledged:,} jobs acknowledged, {found.ended:,} ended once, "
        f"{len(found.lost)} lost, {len(found.doubled)} doubled, {len(found.wrong)} wrong, "
        f"{len(played.harmed)} of somebody else's harmed: {'PASS' if played.passed else 'FAIL'}"
    )


if __name__ == "__main__":
    sys.exit(main())
