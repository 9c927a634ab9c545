"""One module per stage; each has `run(session) -> Stage` and raises TqforgeError when it cannot go on."""
