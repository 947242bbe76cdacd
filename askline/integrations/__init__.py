"""
Adapters to other libraries, one thin module per ecosystem.

Nothing is imported here: each module needs the package that it is named after. A missing package
raises MissingExtraError with the command that installs it.
"""
