"""Where the pinned source is read from: a checkout, a cached clone, or the wheel."""

from sourcepanel.snapshot.base import PinnedSnapshot, Snapshot, check_blob, git_blob_id
from sourcepanel.snapshot.select import open_snapshot

__all__ = ["PinnedSnapshot", "Snapshot", "check_blob", "git_blob_id", "open_snapshot"]
