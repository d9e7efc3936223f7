"""When waiting jobs start: asked of a forecaster beside the planner, shown, kept and judged."""
