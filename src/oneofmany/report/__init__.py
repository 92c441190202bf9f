"""The report: the paper's tables, claims and figures from records of runs, and one HTML file that shows them."""
