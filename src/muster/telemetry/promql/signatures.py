"""The functions that are evaluated: what each is given, and what it gives."""

from collections.abc import Mapping

from muster.model.value import Value
from muster.telemetry.promql.syntax import Kind


class FunctionSignature(Value):
    """What it takes, in order, and what it gives."""

    takes: tuple[Kind, ...]
    gives: Kind = Kind.VECTOR


_OVER_A_RANGE = """rate irate increase delta changes resets avg_over_time min_over_time
    max_over_time sum_over_time count_over_time last_over_time present_over_time absent_over_time
    stddev_over_time stdvar_over_time""".split()

FUNCTIONS: Mapping[str, FunctionSignature] = {
    **{name: FunctionSignature(takes=(Kind.RANGE,)) for name in _OVER_A_RANGE},
    "quantile_over_time": FunctionSignature(takes=(Kind.SCALAR, Kind.RANGE)),
    "predict_linear": FunctionSignature(takes=(Kind.RANGE, Kind.SCALAR)),
    "absent": FunctionSignature(takes=(Kind.VECTOR,)),
    "clamp": FunctionSignature(takes=(Kind.VECTOR, Kind.SCALAR, Kind.SCALAR)),
    "clamp_min": FunctionSignature(takes=(Kind.VECTOR, Kind.SCALAR)),
    "clamp_max": FunctionSignature(takes=(Kind.VECTOR, Kind.SCALAR)),
    "histogram_quantile": FunctionSignature(takes=(Kind.SCALAR, Kind.VECTOR)),
    "label_replace": FunctionSignature(takes=(Kind.VECTOR, *(Kind.TEXT for _ in range(4)))),
    "scalar": FunctionSignature(takes=(Kind.VECTOR,), gives=Kind.SCALAR),
    "vector": FunctionSignature(takes=(Kind.SCALAR,)),
    "time": FunctionSignature(takes=(), gives=Kind.SCALAR),
}

AGGREGATES: Mapping[str, bool] = {
    "sum": False,
    "avg": False,
    "min": False,
    "max": False,
    "count": False,
    "topk": True,
}
"""Whether each takes a number before the series."""
