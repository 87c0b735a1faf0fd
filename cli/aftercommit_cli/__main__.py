"""Where the command starts."""

import importlib.util
import sys

EXIT_USAGE = 2


def main() -> None:
    """Run the command line, or say what it needs."""
    if missing := [name for name in ("click", "rich") if importlib.util.find_spec(name) is None]:
        print(  # noqa: T201 - what prints otherwise is missing
            f"aftercommit needs {' and '.join(missing)}: install its folder with the extra [cli]",
            file=sys.stderr,
        )
        sys.exit(EXIT_USAGE)
    from aftercommit_cli.program import program  # noqa: PLC0415 - it needs what was looked for above

    program(prog_name="aftercommit")


if __name__ == "__main__":
    main()
