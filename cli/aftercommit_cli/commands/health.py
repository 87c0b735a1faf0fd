"""The doctor."""

import click

from aftercommit_cli.call import Call, with_options
from aftercommit_cli.doctoring import Doctor
from aftercommit_cli.errors import REFUSED, UsageProblemError
from aftercommit_cli.findings import FAILED, WARNING, Finding
from aftercommit_cli.output import coloured, joined


@click.command()
@with_options
@click.pass_obj
def doctor(call: Call) -> None:
    """Examine a deployed stack: queues, alarms, schedule, mappings, functions, clock, and what waits for you.

    It only reads. The exit code is 1 if a check failed.
    """
    stack = call.find_stack()
    if not stack:
        raise UsageProblemError("which stack? Name it: --stack NAME (or set AFTERCOMMIT_STACK)")
    findings: list[Finding] = []
    for finding in Doctor(call, stack).examine():
        findings.append(finding)
        if not call.as_json:
            _tell(call, finding)
    failed, warnings = (sum(each.level == level for each in findings) for level in (FAILED, WARNING))
    call.output.answer(
        {"checks": [each.to_json() for each in findings]},
        lambda: call.output.say(f"\n{len(findings)} checks: {failed} failed, {warnings} warnings"),
    )
    click.get_current_context().exit(REFUSED if failed else 0)


def _tell(call: Call, finding: Finding) -> None:
    call.output.wrapped(joined(coloured(f"{finding.level:7}"), f"{finding.check}: {finding.found}"))
    if finding.advice:
        call.output.wrapped(finding.advice, indent=9)
