"""A user of signac-flow: operations on a data space are submitted as jobs."""

import signac
from flow import FlowProject


class Project(FlowProject):
    """One operation, which is complete when its file is there."""


@Project.post.isfile("square.txt")
@Project.operation(directives={"walltime": 0.1})
def square(job: signac.job.Job) -> None:
    with open(job.fn("square.txt"), "w", encoding="utf-8") as file:
        file.write(str(job.sp.number**2))


def main() -> None:
    project = signac.init_project()
    for number in (3, 4):
        project.open_job({"number": number}).init()
    Project().main()


if __name__ == "__main__":
    main()
