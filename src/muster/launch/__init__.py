"""From a placed attempt to what every engine needs: environment, files, steps (pure).

`prepare.py` is the contents page. Engines differ in how they start processes, not in what jobs
find around them, so that is written once, here.
"""
