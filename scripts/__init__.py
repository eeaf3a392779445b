"""Scripts for maintainers. They are not part of the wheel."""
