"""The base of every value, the names things go by, and how time is counted."""

from typing import Any, NewType, dataclass_transform

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


class _ValueType(msgspec.StructMeta):
    """Makes every Value frozen and keyword-only, so that no class has to say so again."""

    def __new__(mcs, *args: Any, **options: Any) -> Any:
        defaults = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
        return super().__new__(mcs, *args, **(defaults | options))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, metaclass=_ValueType, frozen=True):
    """An immutable fact. Compare it, hash it, store it, send it; never change it."""


replace = msgspec.structs.replace
