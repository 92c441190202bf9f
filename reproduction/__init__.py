"""The pages about the paper and about our own published results.

python -m reproduction                # fill README.md and docs/, write the commands, the figures and the report
python -m reproduction --check        # fail if a page does not match the records
python -m reproduction --tables DIR   # export every table as CSV and Markdown, and the claims
"""
