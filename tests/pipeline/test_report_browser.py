"""The page in a real browser, where there is one: nothing of a trace runs, and no width makes the page scroll sideways.

Chromium runs headless with the page's own protection (its content policy) taken out, so that escaping alone is tested;
the policy is tested by itself.
"""

import html
import json
import re
import shutil
from pathlib import Path

import pytest

from pipeline.hostile import HOSTILE, hostile_check, hostile_findings
from pipeline.made_results import LONG_COMMAND
from program_text import ran
from purgatorio_pipeline.report.page import page
from spec.shown_trace import fired_after_completion, fired_early, lost_with_a_flag

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")

MEASURE = """<script>addEventListener('load', () => {
  const d = document.documentElement;
  const e = document.createElement('output');
  e.textContent = `measured ${innerWidth} ${d.scrollWidth} ${document.querySelectorAll('svg').length}`;
  document.body.append(e);
})</script>"""


KEYS = """<script>addEventListener('load', () => {
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
  const said = () => document.querySelector('output.fields').textContent.replaceAll('\\n', '; ');
  const rows = document.querySelectorAll('rect.hit');
  const seen = [said()];
  rows[0].dispatchEvent(new Event('click')); seen.push(said());
  press('ArrowDown'); seen.push(said());
  press('End'); seen.push(said());
  press('ArrowDown'); seen.push(said());
  rows[1].dispatchEvent(new Event('pointerenter')); seen.push(said());
  const count = (what) => document.querySelectorAll(what).length;
  const tab = count('[tabindex="0"].hit');
  document.title = JSON.stringify({seen, chosen: count('.hit.chosen'), tab, bars: count('[data-bar].chosen')});
})</script>"""


def dom(text: str, folder: Path, width: int, *, policy: bool = False) -> str:
    source = folder / "page.html"
    source.write_text(text if policy else re.sub(r"<meta http-equiv=[^>]*>", "", text), encoding="utf-8")
    found = ran(
        [
            *(BROWSER or "", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", source.as_uri()),
        ],
        timeout=120,
        check=True,
    )
    return found.stdout


def test_nothing_of_a_trace_runs(tmp_path: Path) -> None:
    """Every payload at once; each would change the title."""
    text = "".join(page(*hostile_check(hostile), (), hostile_findings(hostile)) for hostile in HOSTILE)
    seen = dom(text, tmp_path, 1280)
    title = re.search(r"<title>(.*?)</title>", seen)
    assert title is not None
    assert title[1].startswith("VIOLATED: ")
    assert title[1].endswith(" - purgatorio report")
    assert "<img" not in seen


def test_the_browser_would_run_unescaped_texts(tmp_path: Path) -> None:
    """The twin that must fail: a script in the page does change its title here."""
    text = page(*hostile_check("x")).replace("<main>", f"<main>{HOSTILE[0]}")
    assert "<title>pwned</title>" in dom(text, tmp_path, 1280)


def test_the_policy_lets_our_script_run_and_no_other(tmp_path: Path) -> None:
    """A script that got in unescaped does not run; ours has written its hint."""
    text = page(*hostile_check("x")).replace("<main>", f"<main>{HOSTILE[0]}")
    seen = dom(text, tmp_path, 1280, policy=True)
    assert "<title>VIOLATED: x - purgatorio report</title>" in seen
    assert "or use Tab and the arrow keys" in seen


def test_a_drawing_answers_to_keys_and_pointer(tmp_path: Path) -> None:
    """Fields of the tapped row, of the next row, of the last row (and no further), and of the row under the pointer.
    One stop for Tab."""
    made = lost_with_a_flag()
    examples = made.examples()
    (example,) = examples.values()
    seen = dom(page(made.result(), examples, []) + KEYS, tmp_path, 1280)
    title = re.search(r"<title>(\{.*?\})</title>", seen)
    assert title is not None
    told = json.loads(html.unescape(title[1]))
    rows = example.rows
    wanted = [rows[0], rows[1], rows[-1], rows[-1], rows[1]]
    assert "point at its row" in told["seen"][0]
    assert [f"i: {row.i};" in said for row, said in zip(wanted, told["seen"][1:], strict=True)] == [True] * 5
    assert (told["chosen"], told["tab"], told["bars"]) == (1, 1, 1)


def test_a_phone_need_not_scroll_sideways(tmp_path: Path) -> None:
    """Wide tables and drawings scroll in their own boxes, at 400 pixels too; with long names without a space."""
    made = fired_early(run="a-very-long-name-" * 8)
    examples = {**made.examples(), **fired_after_completion().examples()}
    result, _, late = hostile_check("x" * 300)
    result = type(result)((*result.runs, *made.result().runs), 1, result.broken)
    found = hostile_findings("x" * 300)
    assert any(one.again == LONG_COMMAND for one in found)
    seen = dom(page(result, examples, late, (), found) + MEASURE, tmp_path, 400)
    measured = re.search(r"measured (\d+) (\d+) (\d+)", seen)
    assert measured is not None
    inner, scroll, drawings = map(int, measured.groups())
    assert inner <= 500, "the window is not narrow, so this would show nothing"
    assert scroll <= inner
    assert drawings == 2


@pytest.mark.parametrize(("width", "display"), [(390, "block"), (1400, "none")])
def test_a_phone_shows_that_more_columns_exist(tmp_path: Path, width: int, display: str) -> None:
    """By a line that names the threads; a wide screen shows them."""
    made = lost_with_a_flag()
    script = """<script>addEventListener('load', () => {
      const hint = document.querySelector('.swipe');
      document.title = getComputedStyle(hint).display + ' ' + hint.textContent;
    })</script>"""
    seen = dom(page(made.result(), made.examples(), []) + script, tmp_path, width)
    title = re.search(r"<title>(.*?)</title>", seen)
    assert title is not None
    assert title[1].startswith(f"{display} Swipe sideways")
    assert title[1].endswith("3 threads: worker-0, worker-1, exec")


def test_every_link_of_the_page_leads_somewhere() -> None:
    """A clause's id to its sentence, a broken cell to its counterexample; the sentence to its page, if any."""
    made = lost_with_a_flag()
    text = page(made.result(), made.examples(), [], docs="https://example.org/docs")
    places = set(re.findall(r' id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert {"clause-O4", "clause-T5", "O4-1"} <= links <= places
    assert 'href="https://example.org/docs/clauses.md#o4"' in text
    assert "example.org" not in page(made.result(), made.examples(), [])
