"""A sweep over learning rates: submit one job for each, wait for all, show what they wrote."""

from muster import Client

RATES = (0.1, 0.01, 0.001)

with Client() as client:
    jobs = {
        rate: client.submit(
            ["sh", "-c", "echo rate $RATE on $MUSTER_NODE"],
            name=f"rate-{rate}",
            gpus=1,
            time="10m",
            env={"RATE": str(rate)},
        )
        for rate in RATES
    }
    for rate, job in jobs.items():
        print(rate, job.wait().state, job.logs().strip())
