"""HorizontalPodAutoscalers: as many replicas as what is measured asks for, and no hasty changes."""
