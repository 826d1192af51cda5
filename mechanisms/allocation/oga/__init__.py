"""OgaSched: online gradient ascent over a bipartite cluster."""
