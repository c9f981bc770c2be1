"""The client package: the wire format, the registry client, serializers and deserializers."""
