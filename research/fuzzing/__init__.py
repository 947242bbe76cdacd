"""Fuzzing: inputs made to break the readers, the splitter and the service."""
