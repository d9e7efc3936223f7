"""Objects as rows of a Table, as `kubectl get` shows them: columns and cells of each kind."""
