"""The worlds in which agents set tasks for each other: a task is data, its goal a small language."""
