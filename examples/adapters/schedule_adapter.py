"""Adapters for schedule: purgatorio explore --package schedule --adapter schedule_adapter:TwoRunners"""

import time

import schedule


class CancelAgainstRun:
    """One thread cancels a job while another thread runs the due jobs."""

    def __init__(self):
        self.scheduler = schedule.Scheduler()
        self.ran = []
        self.job = self.scheduler.every(5).seconds.do(self.ran.append, "x")

    def thread_runs(self):
        time.sleep(5)
        self.scheduler.run_pending()

    def thread_other(self):
        time.sleep(5)
        self.scheduler.cancel_job(self.job)

    def check(self):
        assert len(self.ran) <= 1, self.ran
        assert self.scheduler.jobs == []


class TwoRunners(CancelAgainstRun):
    """Two threads run the due jobs: does each job run once? (The documentation says that it is not made for
    threads.)"""

    def thread_other(self):
        time.sleep(5)
        self.scheduler.run_pending()

    def check(self):
        assert self.ran == ["x"], self.ran
