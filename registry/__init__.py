"""The REST service and the command line: README.md beside this file tells how a request travels."""
