"""The program `purgatorio`. If its script is not on the path, as on a Spark executor, run `python -m
purgatorio_pipeline`."""

import os
import sys


def main() -> None:
    """Run the command line. Its packages may be missing, because the reference needs no packages."""
    try:
        _open_standard_files()
        from purgatorio_pipeline import stopping

        stopping.end_with_parent()
        stopping.bound_interrupts()
        with stopping.loading():
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


def _open_standard_files() -> None:
    """Replace a closed standard output by a pipe without a reader, so that the exit status is the same, and no other
    file gets its number. Replace a closed standard input or error by the null device."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, f"__{name}__") is not None:
            continue
        if name == "stdout":
            read, place = os.pipe()
            os.close(read)
        else:
            place = os.open(os.devnull, os.O_RDWR)
        if place != number:
            os.dup2(place, number)
            os.close(place)
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))


if __name__ == "__main__":
    main()
