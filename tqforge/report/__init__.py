"""The recorded run: schema, judgement and rendering."""
