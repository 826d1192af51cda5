"""A slow, plain second implementation, small random markets, and the bridge from them to the package.

``failures``, ``market`` and ``replay`` are written from docs/mathematics.md and docs/replay.md alone and import nothing
of the package; ``markets`` makes the instances; ``bridge`` drives the package's own classes.
"""
