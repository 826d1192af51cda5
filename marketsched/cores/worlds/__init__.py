"""What policies of the three allocation cores are played in: drawn and recorded clusters, channels and machines."""
