"""Everything outside: processes, git, HTTP, files, the terminal, native libraries."""
