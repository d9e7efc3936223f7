"""How often the cause of a job's trouble is found, and what it takes to judge a device-minute.

    python -m bench.diagnosis [--each 24] [--seed 1] [--half judged|tuning]

Jobs of known trouble come from `_pretend_jobs`, which knows nothing of the rules. Thresholds were
set with a look at the tuning half alone.
"""

import argparse
import time
from collections import Counter
from dataclasses import dataclass

from bench._pretend_jobs import TROUBLES, PretendJob, pretend_jobs
from bench.report import aligned, report
from muster.model.finding import Cause, Confidence
from muster.telemetry.diagnosis.gathering import Gathering, Minute
from muster.telemetry.diagnosis.judging import Course, judge
from muster.telemetry.diagnosis.summary import Summary, confidence, ranked


@dataclass(frozen=True)
class Outcome:
    """What was said of one job."""

    trouble: str
    causes: tuple[Cause, ...]
    confidence: Confidence

    @property
    def is_right(self) -> bool:
        return self.causes[0] == self.trouble

    @property
    def is_near(self) -> bool:
        return self.trouble in self.causes[:2]


def minutes_of(job: PretendJob, *, profiled: bool) -> list[Minute]:
    gathering = Gathering()
    found = [
        minute for moment in job.moments(profiled=profiled) for minute in gathering.add(moment)
    ]
    return [*found, *gathering.close()]


def summary_of(minutes: list[Minute]) -> Summary:
    summary, course = Summary(2_500_000), Course()
    for minute in minutes:
        judged, course = judge([part.member for part in minute.parts], course)
        summary.add(minute, judged)
    return summary


def outcome(job: PretendJob, *, profiled: bool) -> Outcome:
    summary = summary_of(minutes_of(job, profiled=profiled))
    causes = ranked(summary)
    return Outcome(trouble=job.trouble, causes=causes, confidence=confidence(summary, causes[0]))


def halves(seed: int, each: int) -> tuple[list[PretendJob], list[PretendJob]]:
    """The half that thresholds were set on, and the half that they are judged on."""
    jobs = pretend_jobs(seed, each)
    tuning: list[PretendJob] = []
    judged: list[PretendJob] = []
    seen: Counter[str] = Counter()
    for job in jobs:
        seen[job.trouble] += 1
        (tuning if seen[job.trouble] % 2 else judged).append(job)
    return tuning, judged


def share(outcomes: list[Outcome], of: str) -> float:
    count = sum(1 for each in outcomes if getattr(each, of))
    return round(100 * count / len(outcomes), 1)


def sure_but_wrong(outcomes: list[Outcome]) -> float:
    """Of those that were said to be sure, in percent."""
    sure = [each for each in outcomes if each.confidence is Confidence.SURE]
    return round(100 * sum(not each.is_right for each in sure) / max(1, len(sure)), 1)


def that_show(outcomes: list[Outcome]) -> list[Outcome]:
    """Those whose trouble can be seen without GPM."""
    return [each for each in outcomes if TROUBLES[each.trouble].shows_unprofiled]


def microseconds(job_minutes: list[list[Minute]]) -> float:
    """Of CPU time, to judge one device-minute; gathering apart; the best of three."""
    best = float("inf")
    for _ in range(3):
        count, taken = 0, 0.0
        for minutes in job_minutes:
            members = [[part.member for part in minute.parts] for minute in minutes]
            course = Course()
            start = time.process_time()
            for each in members:
                _, course = judge(each, course)
            taken += time.process_time() - start
            count += sum(map(len, members))
        best = min(best, 1e6 * taken / count)
    return round(best, 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=24, help="jobs of each trouble")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("judged", "tuning"), default="judged")
    parser.add_argument("--keep", action="store_true", help="write bench/results")
    args = parser.parse_args()
    tuning, judged = halves(args.seed, args.each)
    jobs = judged if args.half == "judged" else tuning
    profiled = [minutes_of(job, profiled=True) for job in jobs]
    with_gpm = [
        Outcome(job.trouble, (causes := ranked(summary)), confidence(summary, causes[0]))
        for job, minutes in zip(jobs, profiled, strict=True)
        for summary in (summary_of(minutes),)
    ]
    without = [outcome(job, profiled=False) for job in jobs]
    table = [
        {
            "trouble": trouble,
            "jobs": sum(each.trouble == trouble for each in with_gpm),
            "top %": share([e for e in with_gpm if e.trouble == trouble], "is_right"),
            "without GPM %": share([e for e in without if e.trouble == trouble], "is_right"),
            "taken for": _taken_for(with_gpm, trouble),
            "without GPM taken for": _taken_for(without, trouble),
        }
        for trouble in TROUBLES
    ]
    figures = {
        "seed": args.seed,
        "jobs_made": len(tuning) + len(judged),
        "jobs_judged": len(jobs),
        "top_cause_right_percent": share(with_gpm, "is_right"),
        "within_two_percent": share(with_gpm, "is_near"),
        "sure_but_wrong_percent": sure_but_wrong(with_gpm),
        "unprofiled_right_percent": share(that_show(without), "is_right"),
        "unprofiled_sure_but_wrong_percent": sure_but_wrong(without),
        "us_per_device_minute": microseconds(profiled),
    }
    if args.keep:
        report("diagnosis", figures, table)
    else:
        print(aligned(table))
        print(figures)


def _taken_for(outcomes: list[Outcome], trouble: str) -> str:
    wrong = Counter(e.causes[0].value for e in outcomes if e.trouble == trouble and not e.is_right)
    return " ".join(f"{cause}:{count}" for cause, count in sorted(wrong.items()))


if __name__ == "__main__":
    main()
