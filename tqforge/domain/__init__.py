"""Values and rules. Nothing here prints, and nothing here imports commands or cli."""
