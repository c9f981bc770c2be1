"""The session's browser and registry start, which would be time of the first test of a page."""


def test_a_registry(chromium_browser, service):
    """The browser runs, and the registry has content."""
    assert chromium_browser.is_connected()
    assert "orders-value" in service.api("GET", "/subjects")


def test_a_page(open_page):
    """The browser shows the list of subjects."""
    page = open_page()
    page.goto("/")
    page.get_by_role("link", name="orders-value", exact=True).first.wait_for()
