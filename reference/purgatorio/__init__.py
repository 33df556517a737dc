"""Purgatorio, the reference: delayed operations and timing wheels, faithful to Kafka, standard library only."""
