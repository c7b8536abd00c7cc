"""Messages between the processes of one job: transports, groups, and what watches over them."""
