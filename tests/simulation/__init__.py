"""A simulated world for the runtime: tables, queue, stream and clock that misbehave as the real ones may.

`python -m tests.simulation` crashes workers at every write of every scenario; see __main__.py.
"""
