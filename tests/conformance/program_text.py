"""Programs that tests change and run. They are text, since each has its bug."""

from pathlib import Path


def program(name: str) -> str:
    """The text of a program in the folder `programs`."""
    return (Path(__file__).parent / "programs" / f"{name}.txt").read_text(encoding="utf-8")
