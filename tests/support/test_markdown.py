"""Tables, and their places in pages."""

import pytest

from support.markdown import fill, table

PAGE = "# Page\n\n<!-- one -->\nold\n<!-- /one -->\n\n<!-- two -->\n<!-- /two -->\n"


def test_words_align_left_figures_right_and_bars_are_escaped() -> None:
    """Three lines, two columns."""
    assert table(["what", "times"], [["a|b", "3"]]) == (
        "| what | times |\n|---|--:|\n| a\\|b | 3 |"
    )


def test_what_stood_there_is_replaced_and_the_rest_is_left() -> None:
    """Filled twice, it reads the same."""
    once = fill(PAGE, {"one": "new", "two": "other"})
    assert once == (
        "# Page\n\n<!-- one -->\nnew\n<!-- /one -->\n\n<!-- two -->\nother\n<!-- /two -->\n"
    )
    assert fill(once, {"one": "new"}) == once


@pytest.mark.parametrize("page", ["", "<!-- one -->\n", "<!-- /one -->"])
def test_part_without_a_place_is_reported(page: str) -> None:
    """It is not left out."""
    with pytest.raises(
        ValueError, match="no place for 'one': write <!-- one --> and <!-- /one -->"
    ):
        fill(page, {"one": "new"})
