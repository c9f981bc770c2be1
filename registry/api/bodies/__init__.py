"""The JSON of the REST API: models that parse requests and describe answers, and functions that build answers."""
