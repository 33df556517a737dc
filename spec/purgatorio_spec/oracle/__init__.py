"""The simplest model of a timer: a set of waiting deadlines. The model judges what a timer does."""
