"""How a model is trained: the plan, the step, the loop that resumes, and its progress."""
