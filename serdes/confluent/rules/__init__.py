"""Modules of rules under confluent-kafka's names: to register what the engine has changes nothing."""
