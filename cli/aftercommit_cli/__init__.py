"""The command line: a client of the HTTP API, a doctor for deployed stacks, and a start for new projects.

It is no part of what is deployed, and does not import the runtime.
"""
