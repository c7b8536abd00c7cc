"""Runs of sessions whose variables are initialized first."""

import weft.tf1 as tf


def run(fetches, feeds=None):
    """The values of `fetches` in a new session."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(fetches, feeds)
