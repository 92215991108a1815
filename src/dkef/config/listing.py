"""What can be chosen: experiments, datasets and models, each with one line from its own file."""

import re
import textwrap

from dkef.config.files import choices, file_of

GROUPS = ("experiment", "dataset", "model")
WIDTH = 110  # of a line


def description(group: str, name: str) -> str:
    """The title of an experiment; of a dataset or model the first sentence of the comment, or else the title."""
    text = file_of(group, name).read_text(encoding="utf-8")
    title = re.search(r"^title: *(.*?) *(?:#.*)?$", text, re.MULTILINE)
    comment = re.match(r"(?:# ?.*\n)+", text)
    if comment and (group != "experiment" or title is None):
        words = " ".join(comment[0].replace("#", " ").split())
        return re.split(r"(?<=[a-z)\d])[.?] (?=[A-Z])", words)[0].rstrip(".")
    return title[1].strip("\"'") if title else ""


def listing() -> str:
    """One block of lines a group."""
    lines = []
    for group in GROUPS:
        names = choices(group)
        width = max(map(len, names), default=0) + 2
        for_text = WIDTH - width
        lines.append(f"{group}s")
        for name in names:
            lines.append(f"  {name:<{width}}{textwrap.shorten(description(group, name), for_text, placeholder=' ...')}")
        lines.append("")
    return "\n".join(lines)
