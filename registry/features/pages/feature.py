"""The web pages as a feature: they show the views of all features."""

from functools import partial

from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.pages.failure import failure_page
from strata.registry.features.pages.routes import page_routes
from strata.registry.features.pages.sessions import SessionAuthenticator, Sessions
from strata.registry.features.pages.settings import PageSettings, Ui
from strata.registry.features.pages.sign_in import SignIn
from strata.registry.features.pages.table import VIEWS
from strata.registry.features.pages.trends import Trends

__all__ = ["PAGES"]


def _part(node: Node) -> Part | None:
    settings, board = settings_of(node.settings, PageSettings), node.seat.board
    secret = node.settings.read_node_secret() or board.secret
    sessions = Sessions(secret, node.known_users, settings.ui_session_minutes * 60)
    if node.control is not None:
        node.control.authenticator = SessionAuthenticator(node.control.authenticator, sessions)
    if settings.ui is Ui.OFF:
        return None
    sign_in = SignIn(sessions, node.authenticator, node.code_flow, settings.ui_url, by_password=node.by_password)
    trends = Trends([board.numbers(worker) for worker in range(board.workers)], node.progress, board.all_connections)
    return Part(
        watch=(trends.watch,),
        keeps=trends,
        routes=page_routes(node.views, sign_in, with_actions=settings.ui is Ui.FULL),
        failure_page=partial(failure_page, node.views),
    )


PAGES = Feature("pages", _part, PageSettings, views=VIEWS)
