"""Output without a terminal."""

import io

from demo.screen import PlainScreen, open_screen
from demo.summary import Check


def test_table_marks_what_is_off():
    """Numbers are readable, and a line marks an unexpected value."""
    file = io.StringIO()

    PlainScreen(file).table([Check("rows", 336_776, 336_775), Check("policy", "compact", "compact")])

    _, off, ok = file.getvalue().splitlines()
    assert ["rows", "336,776", "336,775", "FAILED"] == off.split()
    assert ["policy", "compact", "compact", "ok"] == ok.split()


def test_progress_that_has_not_moved_is_not_repeated():
    """The output shows the first and the last position, once each."""
    file = io.StringIO()
    screen = PlainScreen(file)

    for read in (0, 0, 1, 2, 2):
        screen.progress(2, read, 2)

    assert ["0", "2"] == [line.split()[-1] for line in file.getvalue().splitlines()]


def test_no_terminal_gets_lines():
    """Only terminals show bars."""
    assert PlainScreen is type(open_screen(io.StringIO()))
