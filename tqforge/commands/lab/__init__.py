"""`tqforge lab`: codecs tried on real models."""
