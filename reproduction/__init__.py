"""The page about the paper and our own published results: what is shown there and nowhere else.

python -m reproduction                # fill README.md and docs/, write the report
python -m reproduction --check        # fail where a page is out of step with the records
python -m reproduction --tables DIR   # every table as CSV and Markdown, and the claims
"""
