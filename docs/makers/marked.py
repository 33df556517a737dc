"""A part of a page that is made, or run: what stands between `<!-- name -->` and `<!-- /name -->`."""


def part(page: str, name: str) -> str:
    """Its lines. Raises ValueError where the page has no such part, or several."""
    start, end = _bounds(page, name)
    return page[start:end]


def with_part(page: str, name: str, text: str) -> str:
    """The page with other lines there."""
    start, end = _bounds(page, name)
    return f"{page[:start]}{text}{page[end:]}"


def listing(page: str, name: str) -> str:
    """The text of the only fenced listing of this part."""
    return "".join(part(page, name).splitlines(keepends=True)[1:-1])


def _bounds(page: str, name: str) -> tuple[int, int]:
    opening, closing = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    if page.count(opening) != 1 or page.count(closing) != 1:
        raise ValueError(f"the page needs exactly one {opening.strip()} and one {closing}")
    return page.index(opening) + len(opening), page.index(closing)
