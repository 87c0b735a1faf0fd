"""Print what was measured, for people."""

from typing import Any

from bench.world import Tally


def print_requests(name: str, told: str, tally: Tally) -> None:
    """Print where each unit is spent: a line per request, write units of tables + indexes."""
    print(f"\n{name}: {told}")
    print(f"  {'function':9}{'request':20}{'write':>8}{'read':>6}  why")
    for each in tally.requests:
        write = f"{each.table_units}+{each.index_units}" if each.write_units else ""
        read = f"{each.read_units:g}" if each.read_units else ""
        why = each.reasons or [""]
        print(f"  {each.function:9}{each.operation:20}{write:>8}{read:>6}  {why[0]}")
        for more in why[1:]:
            print(f"  {'':43}  {more}")


def print_report(figures: dict[str, Any]) -> None:
    """Print all figures but the single requests."""
    _print_workloads(figures["workloads"])
    print("\nunits (write + read) of one step, by its position")
    for name, units in figures["step_units"].items():
        print(f"  {name:22}" + "".join(f"{f'step {at}: {value:g}':>14}" for at, value in units.items()))
    print_events(figures["events"])
    print_removal(figures["removal"])
    print_bulks(figures["bulks"])
    idle = figures["idle_usd_per_month"]
    print("\nidle month, in dollars")
    for name, value in idle.items():
        print(f"  {name:30}{value:8.2f}")
    print(f"\nengine: {figures['engine_us_per_step']} microseconds per step, without I/O")
    print("imports, in milliseconds: " + ", ".join(f"{k} {v}" for k, v in figures["import_ms"].items()))
    print()


def print_events(events: dict[str, Any]) -> None:
    """Print what events of users' own transactions take."""
    print("\nevents told to a queue")
    for name, value in events.items():
        print(f"  {name.replace('_', ' '):40}{value:>10g}")


def print_removal(removal: dict[str, dict[str, float]]) -> None:
    """Print what ended instances that go by themselves take, by workload."""
    print("\none workflow that has ended and goes by itself")
    for name in next(iter(removal.values())):
        values = "".join(f"{f'{workload}: {each[name]:g}':>20}" for workload, each in removal.items())
        print(f"  {name.replace('_', ' '):22}{values}")


def print_bulks(bulks: dict[int, dict[str, float]]) -> None:
    """Print what a child of a bulk costs, by the number of children."""
    print("\na child of a bulk dispatch that waits, by the number of children")
    names = next(iter(bulks.values()))
    for name in names:
        values = "".join(f"{f'{size}: {each[name]:g}':>14}" for size, each in bulks.items())
        print(f"  {name.replace('_', ' '):22}{values}")


def _print_workloads(workloads: dict[str, Any]) -> None:
    rows: list[tuple[str, list[str]]] = []

    def add(title: str, *path: str) -> None:
        values = []
        for each in workloads.values():
            value = each
            for part in path:
                value = value.get(part, 0)
            values.append(f"{value:.2f}" if path[0] == "usd_per_million" else f"{value:g}")
        rows.append((title, values))

    add("DynamoDB write requests", "write_requests")
    add("DynamoDB write units", "write_units")
    add("  of them, of indexes", "write_units_of_indexes")
    add("DynamoDB read requests", "read_requests")
    add("DynamoDB read units", "read_units")
    for kind in ("send", "receive", "delete"):
        add(f"SQS {kind} requests", "sqs", kind)
    for function in ("api", "run", "deliver"):
        add(f"Lambda invocations: {function}", "invocations", function)
    for part in ("dynamodb_writes", "dynamodb_reads", "sqs", "lambda", "api_gateway", "total"):
        add(f"$ per million: {part.replace('_', ' ')}", "usd_per_million", part)
    add("apart, $ per million: logs", "log_usd_per_million")
    add("apart, bytes stored", "storage", "bytes")
    add("apart, $ per million and month stored", "storage", "usd_per_million_and_month")
    print("\n" + f"{'one workflow':40}" + "".join(f"{name:>12}" for name in workloads))
    for title, values in rows:
        print(f"{title:40}" + "".join(f"{value:>12}" for value in values))
