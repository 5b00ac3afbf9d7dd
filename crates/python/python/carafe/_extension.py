"""`Extension`: what `Core.add_extension` takes."""


class Extension:
    """Something that adds to a `Core`; a subclass says what."""

    def _add_to(self, core):
        """Adds it; the base adds nothing."""
