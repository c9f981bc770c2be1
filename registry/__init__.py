"""The REST service and the command line; README.md in this folder explains the path of a request."""
