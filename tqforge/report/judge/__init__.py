"""Turn observations into statuses, levels, facts and recommendations; thresholds.py holds every number that decides."""
