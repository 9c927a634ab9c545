"""Stages that observe, pure rules that judge, one report."""
