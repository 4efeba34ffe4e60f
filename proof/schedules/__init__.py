"""Schedules under kills, outages, deploys and years: every tick makes one job or one recorded
miss, by a checker that is fed from the job rows."""
