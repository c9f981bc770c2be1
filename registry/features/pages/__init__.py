"""The web pages: one row per view, one template per view, and the actions, which are requests of the API."""
