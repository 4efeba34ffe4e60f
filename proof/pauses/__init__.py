"""Many leases paused past their end at once: who slept through them changes nothing."""
