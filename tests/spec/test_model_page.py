"""The page about models says what the code says: diagram, stories, claims and kills are generated. That the table has
the bound and the count of each search: `test_model_claims.py`, which searches."""

from pathlib import Path

import pytest

from docs.makers.marked import part, with_part
from docs.makers.models import kill_block, machine_block, story_block
from purgatorio_spec.campaign import chosen, kills

DOCS = Path(__file__).parents[2] / "docs"
PAGE, MEASURED = DOCS / "models.md", DOCS / "measured" / "models.md"


@pytest.mark.parametrize(
    ("page", "name", "make"),
    [(PAGE, "machine", machine_block), (MEASURED, "stories", story_block), (MEASURED, "kills", kill_block)],
    ids=["machine", "stories", "kills"],
)
def test_a_generated_block_is_up_to_date(
    request: pytest.FixtureRequest, page: Path, name: str, make: object
) -> None:
    """Refresh with --refresh-golden and read the diff."""
    assert callable(make)
    text = f"\n{make()}\n"
    if request.config.getoption("--refresh-golden"):
        page.write_text(with_part(page.read_text(), name, text))
    assert part(page.read_text(), name) == text


def test_every_claim_has_one_row() -> None:
    """A claim that was dropped must not stay on the page."""
    rows = part(MEASURED.read_text(), "claims").strip().splitlines()[2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == chosen(deep=True)


def test_the_kills_cover_the_protocol_and_the_wheel() -> None:
    """The registry that the kill matrix reads: these rows must not be lost unnoticed."""
    by_model = {kill.number for kill in kills() if kill.layer == "model"}
    protocol = {1, 2, 3, 4, 11, 12, 13, 14, 19, 21, 22, 24, 27, 40}
    wheel = {56, 61, 63, 64, 65, 66, 67, 69, 70, 83}
    assert by_model == protocol | wheel
    by_proof = {kill.number for kill in kills() if kill.layer == "proof"}
    assert by_proof == {63, 65, 66, 69, 70, 72, 80}


def test_a_page_without_the_markers_is_an_error() -> None:
    """Silence here would let a block be compared with nothing."""
    with pytest.raises(ValueError, match="exactly one"):
        part("no markers", "machine")
