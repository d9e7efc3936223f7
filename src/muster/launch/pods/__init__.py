"""What the containers of a pod do when, and what they find: values in, values out."""
