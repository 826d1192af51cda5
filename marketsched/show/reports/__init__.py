"""Reports: any folder of results as one page of HTML."""
