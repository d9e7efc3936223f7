"""Random tales: stories that no author thought of, and the shortest one that still goes wrong.

    tale = tell(Random(7))
    if problem(tale):
        print(shortest(tale))

A tale is data, so that it can be played again without some of its steps. `World` checks each plan;
a failing tale reads like a story, and can become one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from traceback import extract_tb

from muster.model.cluster import Abilities
from muster.model.job import ArrayPart, JobState
from muster.model.policy import Packing, Policy, Preference
from muster.model.value import HOUR, JobId
from muster.schedule.verify import Violation
from properties import samples
from stories.telling import as_text
from stories.world import World

HAPPENINGS = (
    *["submits"] * 8,
    *["passes"] * 3,
    *["finishes"] * 4,
    *["stops"] * 2,
    *["drains", "loses", "restores", "breaks", "releases"],
)
WHOSE: tuple[dict[str, str], ...] = ({}, {"queue": "a"}, *samples.GUESTS)
MODES = ("requeue", "suspend", "cancel", "checkpoint")


@dataclass(frozen=True)
class Step:
    """One sentence: `world.word(*about, **details)`."""

    word: str
    about: tuple[object, ...]
    details: Mapping[str, object]

    def __str__(self) -> str:
        said = [as_text(each) for each in self.about]
        said += [f"{name}={as_text(each)}" for name, each in self.details.items()]
        return f"world.{self.word}({', '.join(said)})"


@dataclass(frozen=True)
class Tale:
    """What happens in a world, step by step."""

    policy: Policy
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join([f"world = World({as_text(self.policy)})", *map(str, self.steps)])


def tell(dice: Random) -> Tale:
    """A world and some of its history; the same dice tell the same tale."""
    teller = _Teller(dice)
    teller.sets_the_scene()
    teller.lays_down_rules()
    for _ in range(dice.randint(4, 9) if teller.is_crowded else dice.randint(0, 5)):
        teller.submits()
    teller.reserves()
    for _ in range(dice.randint(1, 4)):
        teller.says("goes_on", slowly=dice.random() < 0.3)
        for _ in range(dice.randint(0, 3)):
            teller.goes_on()
    teller.says("goes_on")
    return Tale(_policy(dice), tuple(teller.steps))


def problem(tale: Tale) -> str | None:
    """What goes wrong when the tale is played, and where; None if all is well."""
    try:
        _play(tale)
    except Exception as error:  # noqa: BLE001  whatever goes wrong is what we look for
        frames = extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/muster/" in frame.filename]
        frame = (ours or frames)[-1]
        return f"{_kind(error)} in {frame.name}: {frame.line}"
    return None


def shortest(tale: Tale) -> Tale:
    """The tale without all that its problem does not need."""
    wrong, before = problem(tale), None
    while tale != before:
        before = tale
        for place in reversed(range(len(tale.steps))):
            for instead in _less(tale.steps[place]):
                steps = (*tale.steps[:place], *instead, *tale.steps[place + 1 :])
                if problem(replace(tale, steps=steps)) == wrong:
                    tale = replace(tale, steps=steps)
                    break
    return tale


class _Teller:
    """Makes up one step after another, in a world with little or with much to do."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.is_crowded = dice.random() < 0.5
        self.steps: list[Step] = []
        self._jobs: list[str] = []
        self._nodes: list[str] = []

    def says(self, word: str, *about: object, **details: object) -> None:
        self.steps.append(Step(word, about, details))

    def sets_the_scene(self) -> None:
        """One or two clusters, two pools, one to six nodes."""
        dice = self.dice
        abilities = Abilities(
            resize=dice.random() < 0.5,
            mig=dice.random() < 0.9,
            mps=dice.random() < 0.9,
            time_share=dice.random() < 0.9,
        )
        other = dice.choice(("c", "c", "d"))
        self.says("has_cluster", "c", abilities=abilities)
        if other == "d":
            self.says("has_cluster", "d", order=dice.choice((1, -1)))
        bounds = self._some(samples.BOUNDED_POOLS)
        self.says("has_pool", "second", cluster=other, spot=dice.random() < 0.4, price=1, **bounds)
        for pool, fewest in (("main", 1), ("second", 0)):
            for number in range(dice.randint(fewest, 3)):
                self._nodes.append(f"{pool[0]}{number + 1}")
                kind, where = self._some(samples.KINDS_OF_NODE), dice.choice(samples.PLACES)
                self.says("has_nodes", self._nodes[-1], pool=pool, where=where, **kind)

    def lays_down_rules(self) -> None:
        """Queues with few lines of quota, and classes of which one preempts the others."""
        dice = self.dice
        for queue in samples.QUEUES:
            drawn = dice.sample(samples.LINES, dice.choice((0, 0, 1, 2)))
            lines = tuple({line.scope: line for line in drawn}.values())
            bounds, weight = self._some(samples.BOUNDED_QUEUES), dice.choice((1, 3))
            self.says("has_queue", queue, quotas=lines, weight=weight, **bounds)
        spared, bounds = dice.choice((0, 0, 15)), self._some(samples.BOUNDED_CLASSES)
        self.says("has_class", "low", priority=-10, mode=dice.choice(MODES))
        self.says("has_class", "normal", mode=dice.choice(MODES), min_run_minutes=spared)
        self.says("has_class", "urgent", priority=100, preempts=("normal", "low"), **bounds)

    def submits(self) -> None:
        dice, name = self.dice, f"j{len(self._jobs) + 1}"
        asked: dict[str, object] = {
            **self._some(samples.PLAIN_SHAPES if self.is_crowded else samples.SHAPES),
            **self._some(samples.HARMLESS if self.is_crowded else samples.RULES),
            **(self._some(samples.RULES) if dice.random() < 0.5 else {}),
            **self._some(({}, {"minutes": 10}, {"minutes": 60})),
            "queue": dice.choice(samples.QUEUES),
            "user": dice.choice(samples.USERS),
            "job_class": dice.choice(samples.CLASSES),
        }
        if self._jobs and dice.random() < 0.1:
            kind = dice.choice(("after", "afterok", "afterany"))
            asked["after"] = f"{kind}:{dice.choice(self._jobs)}"
        if dice.random() < 0.1:
            asked["reservation"] = dice.choice(("kept", "for a/x"))
        if dice.random() < 0.1:
            asked["array"] = ArrayPart(array=JobId(1_000), index=len(self._jobs), at_once=2)
        self._jobs.append(name)
        self.says("submits", name, **asked)

    def reserves(self) -> None:
        """Now and then, nodes or GPUs are kept."""
        dice = self.dice
        if dice.random() < 0.4:
            begins, ends = dice.choice((-10, 0, 20, 90)), dice.choice((100, 120))
            node, whose = dice.choice(self._nodes), dice.choice(WHOSE)
            self.says("reserves", "kept", nodes=node, begins=begins, ends=ends, **whose)
        if dice.random() < 0.3:
            self.says("promises", 2, queue="a/x", begins=dice.choice((0, 20)), ends=120)

    def goes_on(self) -> None:
        """Anything may happen, to anybody."""
        dice = self.dice
        match dice.choice(HAPPENINGS):
            case "submits":
                self.submits()
            case "passes":
                self.says("passes", minutes=dice.choice((1, 15, 60)))
            case ("finishes" | "stops" | "releases") as word:
                self.says(word, dice.choice(self._jobs or ["nobody"]))
            case "breaks":
                self.says("breaks", dice.choice(self._nodes), device=0)
            case word:
                self.says(word, dice.choice(self._nodes))

    def _some(self, details: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
        return self.dice.choice(details)


def _policy(dice: Random) -> Policy:
    return Policy(
        packing=dice.choice((Packing.PACK, Packing.PACK, Packing.SPREAD)),
        prefer=dice.choice((Preference.ORDER, Preference.ORDER, Preference.PRICE)),
        backfill_depth=dice.choice((0, 1, 16, 16)),
        default_time=dice.choice((None, None, HOUR)),
        repartition=dice.random() < 0.8,
        grow=dice.random() < 0.8,
    )


def _play(tale: Tale) -> None:
    """Let it happen. Who had room made for him starts next, if nothing comes between."""
    world = World(tale.policy)
    due: set[str] = set()
    for step in tale.steps:
        if not _is_possible(step, world):
            continue
        outcome = getattr(world, step.word)(*step.about, **step.details)
        if step.word != "goes_on":
            due = set()
            continue
        assert due <= set(outcome.started()), "room was made for a job that does not start"
        due = set() if step.details.get("slowly") else set(outcome.cleared())


def _kind(error: Exception) -> str:
    """What stays the same about a problem when the tale gets shorter: not the amounts."""
    match error.args:
        case ([Violation(rule=rule), *_],):
            return f"broken rule: {rule}"
        case _:
            return repr(error)


def _is_possible(step: Step, world: World) -> bool:
    """Jobs may be over, or may not have begun, when something is to happen to them."""
    if step.word == "stops":
        return step.about[0] in world.stopping()
    needed = {"finishes": JobState.RUNNING, "releases": JobState.HELD}.get(step.word)
    jobs = {name: world.scene.jobs.get(job) for name, job in world.names.items()}
    job = jobs.get(str(step.about[0])) if step.about else None
    return needed is None or (job is not None and job.state is needed)


def _less(step: Step) -> Iterator[tuple[Step, ...]]:
    """Without the step, or with one detail less."""
    yield ()
    for name in step.details:
        rest = {other: each for other, each in step.details.items() if other != name}
        yield (replace(step, details=rest),)
