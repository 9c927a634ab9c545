"""The doors to the outside: processes, git, http, files, terminals, native libraries."""
