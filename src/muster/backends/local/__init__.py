"""This machine: real processes under supervisors that outlive the controller."""
