"""Commands about the rules: the configuration file, quota, users, tokens, the audit trail."""
