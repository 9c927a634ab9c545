"""Build every prefix of a series and run guard tests with and without their patch."""
