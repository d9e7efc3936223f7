"""What the steps of an attempt share, and what each of their tasks finds (pure).

Only the standard library and plain functions of the model are used here: on this machine every
supervisor imports it, and a supervisor must be cheap to fork.
"""
