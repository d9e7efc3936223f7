"""Alerts while this process leads: rules judged at every look, and whoever must act is told.

watcher ─ look ─► loop ─ judging, muting, routing (pure) ─► outbox ─ a thread each ─► receivers
                   └─► board ─► queries
"""
