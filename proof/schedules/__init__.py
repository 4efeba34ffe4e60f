"""Schedules under proof: the rules of time against an oracle that knows nothing of them; kills,
outages, deploys and years by a checker that is fed from the job rows."""
