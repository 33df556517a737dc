"""Golden files: expected outputs that are stored with the tests and compared. `--refresh-golden` writes them."""

from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Golden:
    """Compares a text with a file under `tests/`, or writes it when refreshing."""

    refresh: bool

    def __call__(self, name: str, text: str) -> None:
        path = TESTS / name
        if self.refresh:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), (
            f"no golden file {name}: run pytest with --refresh-golden and read what it wrote"
        )
        assert text == path.read_text(encoding="utf-8"), (
            f"not as in {name}: if that is meant, --refresh-golden"
        )
