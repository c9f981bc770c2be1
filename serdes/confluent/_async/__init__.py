"""The forms for asyncio under the path that some programs import them from; `strata.serdes.confluent` has the same."""
