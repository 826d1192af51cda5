"""The tables and figures of the papers, the paper's numbers beside ours."""
