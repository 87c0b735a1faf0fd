"""The benchmark: what a workflow costs in requests, units, time and dollars. Run it with `make bench`."""
