"""What can be taken from one GPU: the states a device passes through as tenants come.

Whole use, MIG, MPS and time shares never mix on one device at a time,
because the only way from one of them to another leads through an idle device.
"""

from collections.abc import Iterable
from enum import IntEnum

from muster.model.gpu import WHOLE_GPU_MILLI, Device, Mig, MigInstance, MpsShare, Slice, TimeShare
from muster.model.mig import free_starts, geometry, is_legal, mig_milli
from muster.model.value import GpuModel, Value, replace


class Use(IntEnum):
    """What a device is used for now."""

    IDLE = 0
    WHOLE = 1
    MPS = 2
    TIME = 3
    MIG = 4


class DeviceState(Value, cache_hash=True):
    """All that decides what more a device can take.

    layout: the MIG instances that exist, None while MIG mode is off; taken: those in use.
    turns, mps, split: as of the device. One that is split is never idle: it is in that use.
    """

    model: GpuModel
    memory_mib: int
    use: Use = Use.IDLE
    left_milli: int = WHOLE_GPU_MILLI
    left_mib: int = 0
    replicas: int = 0
    layout: tuple[MigInstance, ...] | None = None
    taken: tuple[MigInstance, ...] = ()
    turns: int | None = None
    mps: bool = True
    split: bool = False

    @property
    def name(self) -> str:
        """A text that tells any two states apart, so that ties never depend on who came first."""
        cuts = "-" if self.layout is None else _text(self.layout)
        numbers = f"{self.use:d}.{self.left_milli}.{self.left_mib}.{self.replicas}"
        shares = "" if self.turns is None and self.mps else f".{self.turns}.{self.mps:d}"
        split = ".split" if self.split else ""
        return f"{self.model}.{self.memory_mib}.{numbers}.{cuts}.{_text(self.taken)}{shares}{split}"


class Choice(Value):
    """One way to take a slice: the state after it, where a MIG instance begins, and what it needs.

    `cuts` says that the device must be partitioned again first.
    """

    after: DeviceState
    start: int | None = None
    cuts: bool = False


def resting(device: Device) -> DeviceState:
    """The device without tenants."""
    use = Use.IDLE
    if device.split:
        use = Use.MPS if device.mps else Use.TIME
    return DeviceState(
        model=device.model,
        memory_mib=device.memory_mib,
        left_mib=device.memory_mib,
        layout=None if device.mig is None else in_order(device.mig),
        turns=device.turns,
        mps=device.mps,
        use=use,
        replicas=(device.turns or 0) if use is Use.TIME else 0,
        split=device.split,
    )


def choices(state: DeviceState, part: Slice | None, *, may_cut: bool) -> tuple[Choice, ...]:
    """Every way in which the device could give this slice, or itself whole."""
    match part:
        case None:
            return _whole(state, may_cut=may_cut)
        case MpsShare():
            return _mps(state, part, may_cut=may_cut)
        case TimeShare():
            return _time(state, part, may_cut=may_cut)
        case Mig():
            return _mig(state, part, may_cut=may_cut)


def openings(state: DeviceState) -> int:
    """In how many ways a device that is cut could still be cut further; other uses have none."""
    cut = geometry(state.model)
    if state.use is not Use.MIG or cut is None:
        return 0
    return sum(len(free_starts(state.model, state.taken, each.name)) for each in cut.profiles)


def with_tenant(state: DeviceState, part: Slice | None, start: int | None) -> DeviceState:
    """The state after a tenant that is already there, whatever the rules would say to it today."""
    match part:
        case None:
            return replace(state, use=Use.WHOLE, left_milli=0, left_mib=0, layout=None)
        case MpsShare():
            return _mps_taken(state, part)
        case TimeShare():
            return _time_taken(state, part)
        case Mig(profile=profile):
            return _mig_taken(state, MigInstance(profile=profile, start=start or 0), state.layout)


def _whole(state: DeviceState, *, may_cut: bool) -> tuple[Choice, ...]:
    if not _can_become_uncut(state, may_cut=may_cut):
        return ()
    after = replace(state, use=Use.WHOLE, left_milli=0, left_mib=0, layout=None)
    return (Choice(after=after, cuts=state.layout is not None),)


def _mps(state: DeviceState, share: MpsShare, *, may_cut: bool) -> tuple[Choice, ...]:
    opens = _can_become_uncut(state, may_cut=may_cut)
    if not state.mps or (not opens and state.use is not Use.MPS):
        return ()
    if state.split and not _is_part(share, state.turns or 1):
        return ()
    if share.milli > state.left_milli or mps_memory_mib(share, state.memory_mib) > state.left_mib:
        return ()
    return (Choice(after=_mps_taken(state, share), cuts=state.layout is not None),)


def _is_part(share: MpsShare, turns: int) -> bool:
    """Is this what one of so many equal parts is, but for rounding? Its memory is not chosen."""
    least, most = WHOLE_GPU_MILLI // (turns + 1), WHOLE_GPU_MILLI // turns
    return share.memory_mib == 0 and least < share.milli <= most


def _time(state: DeviceState, share: TimeShare, *, may_cut: bool) -> tuple[Choice, ...]:
    opens = _can_become_uncut(state, may_cut=may_cut)
    joins = state.use is Use.TIME and state.replicas == share.replicas
    turn_milli = WHOLE_GPU_MILLI // share.replicas
    is_offered = state.turns is None or (state.turns > 1 and state.turns % share.replicas == 0)
    if not (is_offered and (opens or joins)) or state.left_milli < turn_milli:
        return ()
    return (Choice(after=_time_taken(state, share), cuts=state.layout is not None),)


def _mig(state: DeviceState, ask: Mig, *, may_cut: bool) -> tuple[Choice, ...]:
    if state.use not in (Use.IDLE, Use.MIG):
        return ()
    idle = [made for made in state.layout or () if made not in state.taken]
    ready = [made for made in idle if made.profile == ask.profile]
    if ready:
        return tuple(
            Choice(after=_mig_taken(state, made, state.layout), start=made.start) for made in ready
        )
    return _mig_cut(state, ask, idle) if may_cut else ()


def _mig_cut(state: DeviceState, ask: Mig, idle: list[MigInstance]) -> tuple[Choice, ...]:
    found: list[Choice] = []
    for start in free_starts(state.model, state.taken, ask.profile):
        made = MigInstance(profile=ask.profile, start=start)
        layout = _with_survivors(state.model, (*state.taken, made), idle)
        after = _mig_taken(state, made, layout)
        found.append(Choice(after=after, start=start, cuts=True))
    return tuple(found)


def _with_survivors(
    model: GpuModel, kept: tuple[MigInstance, ...], idle: list[MigInstance]
) -> tuple[MigInstance, ...]:
    """Leave idle instances standing where the new one is not in their way."""
    for made in idle:
        if is_legal(model, (*kept, made)):
            kept = (*kept, made)
    return in_order(kept)


def _can_become_uncut(state: DeviceState, *, may_cut: bool) -> bool:
    return state.use is Use.IDLE and (state.layout is None or may_cut)


def mps_memory_mib(share: MpsShare, device_mib: int) -> int:
    """The memory of an MPS share: what it says, else the same part of the device."""
    return share.memory_mib or device_mib * share.milli // WHOLE_GPU_MILLI


def _mps_taken(state: DeviceState, share: MpsShare) -> DeviceState:
    return replace(
        state,
        use=Use.MPS,
        left_milli=state.left_milli - share.milli,
        left_mib=state.left_mib - mps_memory_mib(share, state.memory_mib),
        layout=None,
    )


def _time_taken(state: DeviceState, share: TimeShare) -> DeviceState:
    left_milli = state.left_milli - WHOLE_GPU_MILLI // share.replicas
    return replace(state, use=Use.TIME, left_milli=left_milli, replicas=share.replicas, layout=None)


def _mig_taken(
    state: DeviceState, made: MigInstance, layout: tuple[MigInstance, ...] | None
) -> DeviceState:
    return replace(
        state,
        use=Use.MIG,
        left_milli=state.left_milli - mig_milli(state.model, made.profile),
        layout=in_order({*(layout or ()), made}),
        taken=in_order((*state.taken, made)),
    )


def in_order(instances: Iterable[MigInstance]) -> tuple[MigInstance, ...]:
    """A layout in the one order in which layouts are compared."""
    return tuple(sorted(instances, key=lambda made: (made.start, made.profile)))


def _text(instances: tuple[MigInstance, ...]) -> str:
    return ",".join(f"{made.profile}@{made.start}" for made in instances)
