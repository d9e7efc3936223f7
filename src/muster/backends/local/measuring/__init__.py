"""What devices, jobs and this machine do: read from the driver and the kernel."""
