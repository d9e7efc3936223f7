"""From where on a signal speaks for a cause, in thousandths.

Set on one half of the synthetic jobs of `bench/diagnosis.py` and judged on the other.
"""

from muster.model.value import MINUTE, Duration, Value


class Thresholds(Value, gc=False):
    """Numbers of the decision list. Those without GPM have `unprofiled` in their names."""

    start_patience: Duration = Duration(10 * MINUTE)
    idle_patience: Duration = Duration(3 * MINUTE)
    still_patience: Duration = Duration(5 * MINUTE)
    nothing: int = 20
    untouched_memory: int = 30
    still_busy: int = 900
    still_busy_unprofiled: int = 985
    still_power: int = 450
    still_link: int = 10
    still_moved: int = 16
    still_fp32: int = 5
    stuck_blocked: int = 500
    throttled: int = 100
    slow_clock: int = 800
    computing: int = 200
    burst: int = 10
    burst_busy: int = 300
    straggling: int = 800
    longer: int = 1_450
    starved: int = 700
    io: int = 200
    io_cpu: int = 800
    cpu: int = 800
    cpu_throttled: int = 100
    thread: int = 850
    thread_cpu: int = 600
    quiet_cpu: int = 200
    quiet_thread: int = 400
    quiet_io: int = 100
    copying: int = 600
    copying_narrow: int = 500
    talking: int = 150
    talking_sm: int = 500
    talking_network: int = 1_000
    talking_power_unprofiled: int = 650
    plain: int = 500
    plain_fp32: int = 100
    tensor: int = 20
    tensor_echo: int = 80
    """So much of FP32's activity an H200 shows as its tensor cores' too, which do nothing: 62."""
    memory_bound: int = 600
    good: int = 500
    good_tensor: int = 200
    good_power_unprofiled: int = 600
    some: int = 500
    small: int = 500
    small_occupancy: int = 120
    small_power_unprofiled: int = 600
    oversized: int = 250
    goal: int = 700
    """The useful part from which on nothing counts as waste."""


STARTING_VALUES = Thresholds()
