"""What `sacctmgr` manages: accounts, users and QOS as queues, users and classes."""
