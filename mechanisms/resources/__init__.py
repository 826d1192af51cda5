"""Clusters of several resources and kinds of nodes, and the shapes in which a job can run there."""
