"""What a reading note must look like: its headings, records and code blocks; reading time; the roadmap.

Pure: Markdown text and values in, findings and Markdown out. Nothing here knows MkDocs.
"""
