"""What all tests share: how hard the property tests look."""

import os

from hypothesis import HealthCheck, settings

# The same examples on every run and every machine: a red build is a change, not bad luck.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# For the night: new examples each time, and many of them.
settings.register_profile(
    "long",
    max_examples=5_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
