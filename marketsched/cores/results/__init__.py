"""What results of the cores print and draw."""
