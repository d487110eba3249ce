"""What a server tells of itself in Prometheus text: from raw scrapes to series, statistics and exports.

Everything here but what scrapes is pure: a record of scrapes in, exports out, with the times in it and no clock.
"""
