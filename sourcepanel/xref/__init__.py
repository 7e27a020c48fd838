"""Moving through the source: what every identifier of a snapshot means, and who uses what. Built once, cached."""
