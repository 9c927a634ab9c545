"""Put the facts that the rules found into words."""
