"""Where the parts of one log Z lie in their folder, for jobs of the workflow and for a run by hand alike."""

PILOT = "pilot.json"
PROPOSAL = "proposal.h5"
CHUNK = "{stage}/chunk{chunk}.json"  # with the wildcards of the rule that makes it


def chunk_name(stage: str, number: int) -> str:
    """The file of one numbered chunk, below the folder."""
    return CHUNK.format(stage=stage, chunk=f"{number:04d}")
