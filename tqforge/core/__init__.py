"""Values shared by every layer: bases, hosts, K/V pairs and the tq3_0 format."""
