"""Documents of what is measured: columns, so that a page of 8,000 GPUs stays small."""

from collections.abc import Mapping

from muster.model.value import Value


class DevicesNowDocument(Value):
    """Every GPU as it is: the lists are parallel, and null where nothing is known.

    busy and memory are parts of 1; heat and margin are degrees Celsius; power is in watts.
    """

    id: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    index: tuple[int, ...] = ()
    model: tuple[str, ...] = ()
    rack: tuple[str | None, ...] = ()
    health: tuple[str, ...] = ()
    jobs: tuple[tuple[int, ...], ...] = ()
    busy: tuple[float | None, ...] = ()
    memory: tuple[float | None, ...] = ()
    heat: tuple[int | None, ...] = ()
    margin: tuple[int | None, ...] = ()
    power: tuple[float | None, ...] = ()


class SeriesOfDeviceDocument(Value):
    """The values of one GPU, MIG instance or node of a job; null where nothing was measured."""

    node: str
    attempt: int
    values: Mapping[str, tuple[float | None, ...]]
    id: str | None = None
    instance: int | None = None


class JobSeriesDocument(Value):
    """What a job used: `start` is in milliseconds, and each value is the mean of a step."""

    start: int | None
    step_ms: int
    devices: tuple[SeriesOfDeviceDocument, ...] = ()
    nodes: tuple[SeriesOfDeviceDocument, ...] = ()
