"""The base of every value, the names things go by, and how time is counted."""

from typing import NewType, dataclass_transform

import msgspec

ClusterName = NewType("ClusterName", str)
PoolName = NewType("PoolName", str)
NodeId = NewType("NodeId", str)
DeviceId = NewType("DeviceId", str)
GpuModel = NewType("GpuModel", str)
QueuePath = NewType("QueuePath", str)
UserName = NewType("UserName", str)
ClassName = NewType("ClassName", str)
JobId = NewType("JobId", int)

Instant = NewType("Instant", int)
"""Milliseconds since 1970 in UTC."""

Duration = NewType("Duration", int)
"""Milliseconds."""

SECOND = Duration(1_000)
MINUTE = Duration(60_000)
HOUR = Duration(3_600_000)
DAY = Duration(86_400_000)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable fact. Compare it, hash it, store it, send it; never change it.

    It is built by name, which the type checker sees to. A class says `kw_only=True` only where a
    field with a default stands before one without: a metaclass that said so for all of them would
    make the building of every value ten times slower.
    """


replace = msgspec.structs.replace
