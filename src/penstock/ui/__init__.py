"""The status page: a shell rendered here, numbers that its script fetches every second. No CDN, no build."""
