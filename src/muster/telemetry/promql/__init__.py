"""Prometheus' query language: the part of it that alerts are written in (pure).

What Muster does not evaluate is refused when it is read, never evaluated to something else.
"""
