"""Newest first, plain."""

from hybridsim.reference.policies import Replacement


class NewestModel(Replacement):
    """The page that came last goes."""

    def __init__(self) -> None:
        self.pages: list[int] = []

    def admit(self, page: int) -> None:
        """Put the page on top."""
        self.pages.append(page)

    def touch(self, page: int) -> None:
        """Leave it where it is."""

    def remove(self, page: int) -> None:
        """Forget a page."""
        self.pages.remove(page)

    def evict(self) -> int:
        """Take the page on top."""
        return self.pages.pop() if self.pages else -1
