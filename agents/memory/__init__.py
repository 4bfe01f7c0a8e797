"""What was attempted, how it went, and what was learned from it: the experience store."""

from agents.memory.distil import distil, situation
from agents.memory.profile import HistoryRow, Profile, SkillProfile
from agents.memory.records import (
    Advice,
    Episode,
    Found,
    Lesson,
    LessonEntry,
    StoredEpisode,
    TaskEntry,
    TaskRecord,
    Version,
    progress_of,
    state_hashes,
)
from agents.memory.store import Memory

__all__ = [
    "Advice",
    "Episode",
    "Found",
    "HistoryRow",
    "Lesson",
    "LessonEntry",
    "Memory",
    "Profile",
    "SkillProfile",
    "StoredEpisode",
    "TaskEntry",
    "TaskRecord",
    "Version",
    "distil",
    "progress_of",
    "situation",
    "state_hashes",
]
