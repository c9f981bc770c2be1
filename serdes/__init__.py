"""The client island: frames, the registry client, serializers and deserializers."""
