"""Programs that tests change and run. They are text, since each has its bug, or a place for one."""

from pathlib import Path


def program(name: str) -> str:
    return (Path(__file__).parent / "programs" / f"{name}.txt").read_text(encoding="utf-8")
