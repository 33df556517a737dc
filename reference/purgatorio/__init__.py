"""Purgatorio, the reference: delayed operations and timing wheels, faithful to Kafka, stdlib only."""
