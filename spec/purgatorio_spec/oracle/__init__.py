"""An oracle for tests of timers: the simplest model of a timer is a set of waiting deadlines."""
