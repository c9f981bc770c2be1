"""Where exporters copy to: the configuration that users give, and its credentials."""
