"""The views: functions that read a State and return what a template shows."""
