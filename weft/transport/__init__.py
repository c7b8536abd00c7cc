"""Messages between the processes of a job: transports, groups, collectives, failure detection."""
