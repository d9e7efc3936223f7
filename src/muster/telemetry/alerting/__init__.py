"""Rules become alerts, and alerts become messages to those who can act (pure).

    reading → judging → routing → receivers' bodies

`now` is an argument everywhere, so that a day of alerts is played in a test.
"""
