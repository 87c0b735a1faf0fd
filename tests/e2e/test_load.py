"""A short load run on the stack that these tests share, under a tenant of its own."""

from scripts.audit import Kind
from scripts.load import run_load

SECONDS = 15


def test_a_loaded_stack_with_killed_workers_and_doubled_commands_loses_and_doubles_nothing(stack):
    verdict, load = run_load(stack, SECONDS)
    assert load.killer.total() > 0
    assert load.duplicator.copies * 10 >= load.duplicator.items > 0, "every tenth command comes twice"
    assert verdict.started == verdict.ended > 0
    # An order may end otherwise than it should: here a step is given up when two of its workers have died.
    assert [each for each in verdict.violations if each.kind != Kind.UNEXPECTED] == []
