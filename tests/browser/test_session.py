"""The session's browser and registry start, which would be time of the first test of a page."""


def test_a_page(open_page):
    """The browser shows the list of subjects."""
    page = open_page()
    page.goto("/")
    page.get_by_role("link", name="orders-value", exact=True).first.wait_for()
