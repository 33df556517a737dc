"""The program `purgatorio`; `python -m purgatorio_pipeline` where its script is not on the path, as on an executor."""

import sys


def main() -> None:
    """Run the command line. What it needs itself may be missing, since the reference alone needs nothing."""
    try:
        from purgatorio_pipeline import cli
    except ModuleNotFoundError as missing:
        print(
            f"Error: `purgatorio` needs {missing.name}, which is not installed: pip install 'purgatorio[spec]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
