"""What the commands about calibration share: runs on disk, checks, comparisons."""
