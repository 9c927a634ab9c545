"""The patched library in a child process: native code may die there without taking the report with it."""
